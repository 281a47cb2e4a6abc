import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasPrograms } from '../support/needed-programs.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

const run = promisify(execFile)
const TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
let world: World
let me: string
beforeAll(async () => {
  world = await startWorld()
  me = `${world.agent.name} <${world.agent.signing_email}>`
})
afterAll(() => world.close())

const commit = (author = me, message = 'Größe\n') =>
  `tree ${TREE}\nauthor ${author} 1760000000 +0000\ncommitter ${me} 1760000000 +0000\n\n${message}`
const asGit = () => ['sign', '--status-fd=2', '-bsau', world.agent.signing_key_id]
const sign = (stdin: string, argv = asGit()) => runCli(argv, { env: world.env, stdin })

describe('sign, as git calls it', () => {
  test('prints the signature and reports it to git', async () => {
    const { code, stdout, stderr } = await sign(commit())
    expect(code).toBe(0)
    expect(stdout).toMatch(/^-----BEGIN PGP SIGNATURE-----\n[\s\S]+\n-----END PGP SIGNATURE-----\n$/)
    expect(stdout).not.toContain('\r')
    expect(stderr).toMatch(
      new RegExp(
        `^\\n\\[GNUPG:\\] SIG_CREATED D 22 10 00 \\d{10} [0-9A-F]{24}${world.agent.signing_key_id}\\n$`,
      ),
    )
  })

  test('as a process, writes the status to the requested descriptor', async () => {
    const argv = ['sign', '--status-fd=1', '-bsau', world.agent.signing_key_id]
    const end = await spawnCli(argv, { env: world.env, stdin: commit() }).ended
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(end.stdout).toMatch(/-----BEGIN PGP SIGNATURE[\s\S]*\[GNUPG:\] SIG_CREATED /)
  })

  test('sends a tag as a tag', async () => {
    const tag = `object ${TREE}\ntype tree\ntag v1\ntagger ${me} 1760000000 +0000\n\nRelease\n`
    expect((await sign(tag)).code).toBe(0)
  })

  test.each<[string, () => string, string[] | undefined, number, RegExp]>([
    [
      'a foreign author',
      () => commit('Eve <eve@example.com>'),
      undefined,
      5,
      /author is not .* would sign this/,
    ],
    ['text that is not a commit', () => 'any text', undefined, 2, /not a git commit/],
    ['nothing', () => '', undefined, 2, /at least one byte/],
    ['too much', () => commit(me, 'x'.repeat(48_000)), undefined, 1, /larger than the 48000 bytes/],
    ['far too much', () => commit(me, 'x'.repeat(500_000)), undefined, 1, /larger than the 48000 bytes/],
    [
      'another key',
      () => commit(),
      ['sign', '--status-fd=2', '-bsau', '0123456789ABCDEF'],
      1,
      /git asks for a key other than/,
    ],
  ])('refuses %s in one line, without a signature', async (_name, stdin, argv, exit, said) => {
    const { code, stdout, stderr } = await sign(stdin(), argv)
    expect([code, stdout]).toEqual([exit, ''])
    expect(stderr).toMatch(said)
    expect(stderr).not.toContain('SIG_CREATED')
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })

  test('reports a missing login and a missing server', async () => {
    const { MAYFLY_TOKEN: _, ...bare } = world.env
    expect((await runCli(asGit(), { env: bare, stdin: commit() })).code).toBe(4)
    const gone = { ...world.env, MAYFLY_SERVER: 'http://127.0.0.1:1' }
    const { code, stdout, stderr } = await runCli(asGit(), { env: gone, stdin: commit() })
    expect([code, stdout]).toEqual([3, ''])
    expect(stderr).toMatch(/Cannot reach http:\/\/127\.0\.0\.1:1/)
  })
})

describe('any other call of gpg', () => {
  test('is passed on unchanged, with its streams and exit code', async () => {
    const bin = await mkdtemp(join(world.home, 'bin-'))
    const program = join(bin, 'gpg')
    await writeFile(program, '#!/bin/sh\nprintf "%s|" "$@"; cat; echo told >&2; exit 33\n')
    await chmod(program, 0o755)
    const argv = ['sign', '--keyid-format=long', '--status-fd=1', '--verify', 'a b', '-']
    const end = await spawnCli(argv, {
      env: { ...world.env, PATH: `${bin}:${world.env['PATH']}` },
      stdin: 'the commit',
    }).ended
    expect(end).toMatchObject({ code: 33, stderr: 'told\n' })
    expect(end.stdout).toBe('--keyid-format=long|--status-fd=1|--verify|a b|-|the commit')
  })

  test('needs a gpg', async () => {
    const { code, stderr } = await runCli(['sign', '--verify', 'x', '-'], {
      env: { ...world.env, MAYFLY_GPG: '/nowhere/gpg' },
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/Cannot run \/nowhere\/gpg.*Install GnuPG/)
  })
})

describe.skipIf(!hasPrograms('gpg'))('with the real git', () => {
  let repository: string
  let env: Record<string, string>
  const git = (...args: string[]) => run('git', args, { cwd: repository, env })
  beforeAll(async () => {
    repository = await mkdtemp(join(world.home, 'repository-'))
    const gpg = join(world.home, 'g')
    await mkdir(gpg, { mode: 0o700 })
    env = { ...world.env, GNUPGHOME: gpg, GIT_CONFIG_NOSYSTEM: '1' }
    await git('init', '-q')
    const { body } = await world.app.admin('GET', '/v1/admin/keys')
    const key = body.find((one: { agent_id: string }) => one.agent_id === world.agent.id)
    await writeFile(join(world.home, 'key.asc'), key.public_key)
    await run('gpg', ['--batch', '--import', join(world.home, 'key.asc')], { env })
    expect((await runCli(['git', 'setup'], { env, cwd: repository })).code).toBe(0)
  })
  afterAll(() => run('gpgconf', ['--homedir', join(world.home, 'g'), '--kill', 'all']))

  test('signs commit, tag, amend and merge, and verifies them through the same program', async () => {
    await git('commit', '-q', '--allow-empty', '-m', 'Größe')
    await git('commit', '-q', '--amend', '--allow-empty', '-m', 'Grösse')
    await git('tag', '-s', '-m', 'Release', 'v1')
    await git('checkout', '-q', '-b', 'side')
    await git('commit', '-q', '--allow-empty', '-m', 'side')
    await git('checkout', '-q', '-')
    await git('merge', '-q', '--no-ff', '-m', 'merge', 'side')
    for (const commit of ['HEAD', 'HEAD^1', 'HEAD^2'])
      expect((await git('verify-commit', commit)).stderr).toContain(`Good signature from "${me}"`)
    expect((await git('verify-tag', 'v1')).stderr).toContain('Good signature')
    expect((await git('log', '-1', '--format=%GK')).stdout.trim()).toBe(world.agent.signing_key_id)
  })

  test('refuses another author with one clear line and makes no commit', async () => {
    const before = (await git('rev-parse', 'HEAD')).stdout
    // Through a shell: a pipe made by Node is a socket, which nobody but git can write to.
    const said = join(world.home, 'said')
    const command =
      "echo before >$0; git commit --allow-empty --author 'Eve <eve@example.com>' -m forged 2>>$0"
    await expect(run('sh', ['-c', command, said], { cwd: repository, env })).rejects.toMatchObject({
      code: 128,
    })
    const lines = (await readFile(said, 'utf8')).split('\n')
    expect(lines[0]).toBe('before')
    expect(lines.filter((line) => line.startsWith('mayfly: '))).toEqual([
      expect.stringMatching(/^mayfly: The author is not .*, whose key would sign this\./),
    ])
    expect((await git('rev-parse', 'HEAD')).stdout).toBe(before)
    await expect(git('verify-commit', 'HEAD')).resolves.toBeDefined()
  })

  test.each([
    ['commit', 'git commit --allow-empty --author "Eve <eve@example.com>" -m forged'],
    ['commit with all output in one file', 'git commit --allow-empty --author "E <e@example.com>" -m x 2>&1'],
    ['tag', 'git -c user.signingkey=0123456789ABCDEF tag -s -m Release v2'],
  ])('keeps its line whole in a file that git does not append to: %s', async (_, command) => {
    const said = join(world.home, 'overwritten')
    const all = command.endsWith('2>&1')
      ? `{ echo before; ${command}; } >$0`
      : `{ echo before >&2; ${command}; } 2>$0`
    await expect(run('sh', ['-c', all, said], { cwd: repository, env })).rejects.toMatchObject({ code: 128 })
    const lines = (await readFile(said, 'utf8')).split('\n')
    expect(lines[0]).toBe('before')
    expect(lines).toContainEqual(expect.stringMatching(/^error: gpg failed to sign the data/))
    const own = lines.filter((line) => line.startsWith('mayfly: '))
    expect(own).toEqual([
      expect.stringMatching(
        /^mayfly: (?:The author is not .*\.|git asks for a key other .*user\.signingkey\.)$/,
      ),
    ])
  })

  test('the audit log has each signature with the tree that git knows', async () => {
    const { body } = await world.app.admin(
      'GET',
      `/v1/admin/audit?agent=${world.agent.id}&action=signing_key.used&limit=1000`,
    )
    const tree = (await git('rev-parse', 'HEAD^{tree}')).stdout.trim()
    const trees = body.map((entry: { details: { tree?: string } }) => entry.details.tree)
    expect(trees).toContain(tree)
    expect(await readFile(join(repository, '.git', 'config'), 'utf8')).not.toContain(world.agent.token)
  })
})
