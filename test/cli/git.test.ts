import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { HOST, newRepository, runGit } from './git-support.ts'
import { newHome, runCli, spawnCli, startWorld, type World } from './support.ts'

const run = promisify(execFile)
let world: World
let repository: string
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())
beforeEach(async () => {
  repository = await newRepository(world)
})

const git = (...args: string[]) => runGit(world, repository, args)
const cli = (...argv: string[]) => runCli(argv, { env: world.env, cwd: repository })

describe('git setup', () => {
  test('makes the agent sign the commits of this repository', async () => {
    const { code, stdout, stderr } = await cli('git', 'setup', '--json')
    expect([code, stderr]).toEqual([0, ''])
    const shown = JSON.parse(stdout)
    expect(shown).toEqual({
      scope: 'local',
      signing: {
        name: world.agent.name,
        email: world.agent.signing_email,
        key_id: world.agent.signing_key_id,
        program: expect.stringContaining(join(world.home, 'data', 'mayfly')),
      },
      hosts: [],
    })
    expect(await git('config', '--local', 'user.name')).toBe(world.agent.name)
    expect(await git('config', '--local', 'user.email')).toBe(world.agent.signing_email)
    expect(await git('config', '--local', 'user.signingkey')).toBe(world.agent.signing_key_id)
    expect(await git('config', '--local', 'commit.gpgsign')).toBe('true')
    expect(await git('config', '--local', 'gpg.format')).toBe('openpgp')
    expect(await git('config', '--local', 'gpg.program')).toBe(shown.signing.program)
    expect(existsSync(join(world.home, '.gitconfig'))).toBe(false)
  })

  test('reads the public half of the key only, and keeps no secret on disk', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const env = { ...world.env, MAYFLY_TOKEN: agent.token }
    expect((await runCli(['git', 'setup', ...HOST], { env, cwd: repository })).code).toBe(0)
    const { body } = await world.app.admin('GET', `/v1/admin/audit?agent=${agent.id}`)
    expect(body.map(({ action }: { action: string }) => action)).not.toContain('signing_key.read')
    const program = await git('config', 'gpg.program')
    expect((await stat(program)).mode & 0o777).toBe(0o700)
    const written = (await readFile(program, 'utf8')) + (await git('config', '--list'))
    expect(written).not.toContain(agent.token)
    expect(written).toContain(world.url)
  })

  test('with a host, becomes its only credential helper', async () => {
    expect(
      (
        await cli(
          'git',
          'setup',
          ...HOST,
          '--ttl',
          '5m',
          '--scope',
          'read',
          '--param',
          "a=b c'd",
          '--no-sign',
        )
      ).code,
    ).toBe(0)
    const key = 'credential.https://git.example.com.helper'
    const [reset, helper, ...more] = (await git('config', '--local', '--get-all', key)).split('\n')
    expect([reset, more]).toEqual(['', []])
    expect(helper).toMatch(/^!.* git-credential --server \S+ /)
    expect(helper).toMatch(
      / --host https:\/\/git\.example\.com --backend demo --ttl 5m --scope read --param 'a=b c'\\''d'$/,
    )
    await expect(git('config', 'user.signingkey')).rejects.toThrow()
  })

  test('gives the same result when repeated, and adds other hosts', async () => {
    await cli('git', 'setup', ...HOST)
    const before = await git('config', '--local', '--list')
    expect((await cli('git', 'setup', ...HOST)).code).toBe(0)
    expect(await git('config', '--local', '--list')).toBe(before)
    expect((await cli('git', 'setup', '--host', 'other.example', '--backend', 'demo')).code).toBe(0)
    const { hosts } = JSON.parse((await cli('git', 'status', '--json')).stdout)
    expect(hosts.map(({ url }: { url: string }) => url)).toEqual([
      'https://git.example.com',
      'https://other.example',
    ])
  })

  test('--global configures all repositories, in the file that git itself would use', async () => {
    const xdg = join(world.home, 'config', 'git', 'config')
    const home = join(world.home, '.gitconfig')
    try {
      expect((await cli('git', 'setup', '--global')).code).toBe(0)
      expect(await readFile(home, 'utf8')).toContain(world.agent.signing_key_id)
      expect(await git('config', '--global', 'user.name')).toBe(world.agent.name)
      expect((await cli('git', 'unset', '--global')).code).toBe(0)
      await rm(home)
      await mkdir(join(world.home, 'config', 'git'), { recursive: true })
      await writeFile(xdg, '[user]\n\tname = Somebody\n')
      expect((await cli('git', 'setup', '--global')).code).toBe(0)
      expect(await readFile(xdg, 'utf8')).toContain(world.agent.signing_key_id)
      expect((await cli('git', 'unset', '--global')).code).toBe(0)
      expect(await git('config', '--global', 'user.name')).toBe('Somebody')
      expect(existsSync(home)).toBe(false)
    } finally {
      await rm(home, { force: true })
      await rm(join(world.home, 'config', 'git'), { recursive: true, force: true })
    }
  })

  test('--process sets up the processes of one shell without changing a file', async () => {
    const before = await git('config', '--list')
    const { code, stdout } = await cli('git', 'setup', '--process', ...HOST)
    expect(code).toBe(0)
    expect(await git('config', '--list')).toBe(before)
    const script = `${stdout}\ngit config user.email; git config --get-all credential.https://git.example.com.helper`
    const shell = await run('sh', ['-c', script], { cwd: repository, env: world.env })
    expect(shell.stdout).toMatch(new RegExp(`^${world.agent.signing_email}\n\n!.*git-credential`))
    const nested = await runCli(['git', 'setup', '--process', '--json'], {
      env: { ...world.env, GIT_CONFIG_COUNT: '2' },
      cwd: repository,
    })
    expect(JSON.parse(nested.stdout).env).toMatchObject({
      GIT_CONFIG_COUNT: '9',
      GIT_CONFIG_KEY_2: 'user.name',
    })
  })

  test.each<[string, string[], number, RegExp]>([
    ['a host without a backend', ['--host', 'git.example.com'], 2, /go together/],
    ['a backend without a host', ['--backend', 'demo'], 2, /go together/],
    [
      'plain http to another machine',
      ['--host', 'http://git.example.com', '--backend', 'demo'],
      2,
      /https only/,
    ],
    ['an invalid host', ['--host', 'a b', '--backend', 'demo'], 2, /git host is not valid/],
    [
      'a backend that is not there',
      ['--host', 'git.example.com', '--backend', 'nowhere'],
      1,
      /no such backend/,
    ],
    ['two scopes', ['--local', '--global'], 2, /mutually exclusive/],
    ['nothing to do', ['--no-sign'], 2, /nothing to set up/],
  ])('refuses %s in one line, and changes nothing', async (_name, argv, exit, said) => {
    const before = await readFile(join(repository, '.git', 'config'), 'utf8')
    const { code, stdout, stderr } = await cli('git', 'setup', ...argv)
    expect([code, stdout]).toEqual([exit, ''])
    expect(stderr).toMatch(said)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(await readFile(join(repository, '.git', 'config'), 'utf8')).toBe(before)
    expect(await readdir(join(repository, '.git'))).not.toContain('config.lock')
  })

  test('reports that there is no repository', async () => {
    const { code, stderr } = await runCli(['git', 'setup'], { env: world.env, cwd: world.home })
    expect(code).toBe(1)
    expect(stderr).toMatch(/not in a git repository.*--global.*--process/)
  })

  test('does not replace another credential helper', async () => {
    await git('config', 'credential.https://git.example.com.helper', 'store')
    const { code, stderr } = await cli('git', 'setup', ...HOST)
    expect(code).toBe(1)
    expect(stderr).toMatch(/another credential helper.*git config --unset-all/)
    await expect(git('config', 'user.name')).rejects.toThrow()
  })

  test('does not wait for git’s lock', async () => {
    const lock = join(repository, '.git', 'config.lock')
    await writeFile(lock, '')
    const { code, stderr } = await cli('git', 'setup')
    expect(code).toBe(1)
    expect(stderr).toMatch(/Another git is changing/)
    expect(existsSync(lock)).toBe(true)
  })

  test('changes nothing and leaves no lock when interrupted', async () => {
    const bin = await mkdtemp(join(world.home, 'bin-'))
    const real = (await run('sh', ['-c', 'command -v git'], { env: world.env })).stdout.trim()
    // Sends the signal when the first settings are written already.
    const shim = `#!/bin/sh\ncase "$*" in *--add*user.signingkey*) kill -INT $PPID; exec tail -f /dev/null;; esac\nexec ${real} "$@"\n`
    await writeFile(join(bin, 'git'), shim, { mode: 0o755 })
    const before = await readFile(join(repository, '.git', 'config'), 'utf8')
    const env = { ...world.env, PATH: `${bin}:${world.env['PATH']}` }
    const end = await spawnCli(['git', 'setup'], { env, cwd: repository }).ended
    expect(end).toEqual({ code: 130, signal: null, stdout: '', stderr: '' })
    expect(await readFile(join(repository, '.git', 'config'), 'utf8')).toBe(before)
    expect((await readdir(join(repository, '.git'))).filter((name) => name.startsWith('config'))).toEqual([
      'config',
    ])
  })

  test('keeps the mode of the file and follows a link to it', async () => {
    const kept = join(repository, 'kept')
    await rename(join(repository, '.git', 'config'), kept)
    await symlink(kept, join(repository, '.git', 'config'))
    await chmod(kept, 0o600)
    expect((await cli('git', 'setup')).code).toBe(0)
    expect((await lstat(join(repository, '.git', 'config'))).isSymbolicLink()).toBe(true)
    expect((await stat(kept)).mode & 0o777).toBe(0o600)
    expect(await git('config', 'user.name')).toBe(world.agent.name)
  })

  test('without a login, says what to do and exits with 4', async () => {
    const { code, stderr } = await runCli(['git', 'setup'], {
      env: { ...world.bareEnv, MAYFLY_SERVER: world.url },
      cwd: repository,
    })
    expect(code).toBe(4)
    expect(stderr).toMatch(/mayfly (enroll|login)/)
  })

  test('reports that git is not installed', async () => {
    const { code, stderr } = await runCli(['git', 'setup'], {
      env: { ...world.env, PATH: '/nowhere' },
      cwd: repository,
    })
    expect([code, stderr]).toEqual([1, 'mayfly: git is not in the PATH. Install git.\n'])
  })
})

describe('a later call by git', () => {
  test('finds the server and profile of the setup without any variable of mayfly', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const { home, env } = await newHome()
    try {
      const input = { env, stdin: agent.token, cwd: repository }
      const login = await runCli(['login', '--server', world.url, '--profile', 'work'], input)
      expect(login.code).toBe(0)
      const host = `http://${new URL(world.url).host}`
      const argv = ['git', 'setup', '--profile', 'work', '--host', host, '--backend', 'demo']
      expect((await runCli(argv, { env, cwd: repository })).code).toBe(0)
      const later = { PATH: env['PATH'], HOME: home, XDG_CONFIG_HOME: env['XDG_CONFIG_HOME'] }
      const own = { cwd: repository, env: { ...later, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' } }
      await run('git', ['commit', '-q', '--allow-empty', '-m', 'mine'], own)
      const { stdout: commit } = await run('git', ['cat-file', 'commit', 'HEAD'], own)
      expect(commit).toContain(`\ngpgsig -----BEGIN PGP SIGNATURE-----`)
      expect(commit).toContain(`\nauthor ${agent.name} <${agent.signing_email}> `)
      const ask = `printf 'protocol=http\\nhost=${new URL(world.url).host}\\n\\n' | git credential fill`
      expect((await run('sh', ['-c', ask], own)).stdout).toMatch(/^password=eyJ/m)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })
})
