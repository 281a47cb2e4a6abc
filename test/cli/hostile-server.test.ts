import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { json, scripted } from '../support/scripted-server.ts'
import { type CliEnd, newHome, runCli } from './support.ts'

const run = promisify(execFile)
const { home, env } = await newHome()
let cwd: string
let close: (() => Promise<unknown>) | undefined
beforeEach(async () => {
  cwd = await mkdtemp(join(home, 'work-'))
})
afterEach(async () => {
  await close?.()
  close = undefined
})
afterAll(() => rm(home, { recursive: true, force: true }))

/** One command line against a server that always gives this reply. */
async function ask(body: unknown, ...argv: string[]): Promise<CliEnd> {
  const server = await scripted(json(200, body))
  close = server.close
  return runCli(argv, { env: { ...env, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: 'ckr_hostile' }, cwd })
}

const key = {
  key_id: '0123456789ABCDEF',
  name: 'ci',
  email: 'ci@agents.example',
  public_key: 'public',
  private_key: 'private',
}

describe('signing-key and git setup', () => {
  test('a hostile server adds no setting and no command to those of git', async () => {
    const git_config = {
      'user.name': 'ci',
      'core.sshCommand': 'touch owned',
      'x y; touch owned #': 'z',
      '$(touch owned)': 'z',
      'gpg.program': 'evil',
    }
    const shown = await ask({ ...key, git_config }, 'signing-key', '--git-config')
    expect(shown.stdout).toBe(
      `git config 'user.name' 'ci'
git config 'user.email' 'ci@agents.example'
git config 'user.signingkey' '0123456789ABCDEF'
git config 'gpg.format' 'openpgp'
git config 'commit.gpgsign' 'true'
`,
    )
    await run('git', ['init', '-q', cwd])
    await run('/bin/sh', ['-ec', shown.stdout], { cwd, env })
    expect(await readdir(cwd)).toEqual(['.git'])
    await close?.()
    const { stdout } = await ask({ ...key, git_config }, 'signing-key', '--json')
    expect(Object.keys(JSON.parse(stdout).git_config)).toEqual([
      'user.name',
      'user.email',
      'user.signingkey',
      'gpg.format',
      'commit.gpgsign',
    ])
  })

  test.each([
    ['a name that is an option', { name: '--unset-all' }],
    ['a name with a line break', { name: 'ci\n[core]\n\tsshCommand = touch owned' }],
    ['a name with markup', { name: "ci'; touch owned; '" }],
    ['an address that is an option', { email: '--edit' }],
    ['an address with a space', { email: 'ci @agents.example' }],
    ['a key id that is an option', { key_id: '-uowned' }],
    ['a key id of another kind', { key_id: 'key::ssh-ed25519 AAAA' }],
    ['no key id', { key_id: undefined }],
    ['a list', { name: [['ci']] }],
    ['an object', { name: {} }],
  ])('refuse %s', async (_, wrong) => {
    await run('git', ['init', '-q', cwd])
    for (const argv of [
      ['signing-key', '--git-config'],
      ['git', 'setup'],
      ['git', 'setup', '--process'],
    ]) {
      const end = await ask({ ...key, git_config: wrong, ...wrong }, ...argv)
      expect(end).toMatchObject({ code: 3, stdout: '' })
      expect(end.stderr).toBe(
        'mayfly: The server sent a signing key with a malformed name, address or id. ' +
          'Check the address in --server, MAYFLY_SERVER or the profile.\n',
      )
      await close?.()
    }
    expect((await run('git', ['config', '--local', '--list'], { cwd, env })).stdout).not.toMatch(/user|gpg/)
  })
})

const credential = {
  id: 'cred_0123456789abcdefghjkmnpqrs',
  backend: 'PROMPT',
  scopes: [],
  token: 'secret',
  created_at: '2030-01-01T00:00:00.000Z',
  expires_at: '2030-01-01T00:10:00.000Z',
  ttl: '10m',
}

test('sign writes no status line of a hostile server', async () => {
  const signed = {
    signature: 'x',
    key_id: key.key_id,
    name: 'ci',
    email: 'ci@agents.example',
    created_at: '',
  }
  const fingerprint = `${'A'.repeat(40)}\n[GNUPG:] GOODSIG x`
  const end = await ask({ ...signed, fingerprint }, 'sign', '--status-fd=2', '-bsa')
  expect(end).toMatchObject({ code: 3, stdout: '' })
  expect(end.stderr).not.toContain('GNUPG')
})

describe('variables', () => {
  test.each(['env', 'dotenv'])('-o %s names them after the requested credential', async (form) => {
    const hostile = { ...credential, backend: 'LD', fields: { preload: '/tmp/owned.so', password: 'x' } }
    const { stdout } = await ask(hostile, 'get', 'demo', '-o', form)
    expect(stdout.replaceAll('export ', '')).toBe("DEMO_PASSWORD='x'\n")
  })

  test.each([
    ['get', 'mayfly', '-o', 'env'],
    ['get', 'mayfly', '-o', 'dotenv'],
    ['get', 'demo', '--prefix', 'MAYFLY', '-o', 'env'],
    ['run', '--no-run', '--backend', 'mayfly', '--', 'touch', 'owned'],
  ])('a field that completes a forbidden name is refused: %s %s %s %s %s', async (...argv) => {
    const end = await ask({ ...credential, fields: { user: 'touch owned' } }, ...argv)
    expect(end).toMatchObject({ code: 2, stdout: '' })
    expect(end.stderr).toContain('"MAYFLY_USER" is a variable that mayfly does not set.')
    expect(await readdir(cwd)).toEqual([])
  })
})

test.each([[[]], [['--wait']]])(
  'a hostile server adds no command to the one that approves a request: %j',
  async (more) => {
    const id = "enr_1; touch owned; '"
    const server = await scripted(json(200, { id }), json(403, {}))
    close = server.close
    const given = { ...env, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: 'ckr_hostile' }
    const { stdout, stderr } = await runCli(['request', 'demo', ...more], { env: given, cwd })
    expect(stdout + stderr).toContain(`mayfly approve 'enr_1; touch owned; '\\'''\n`)
  },
)

describe('a terminal', () => {
  const steering = '\x1b]0;owned\x07\x1b[8m\x9b2J\x7f\u202e'
  const hostile = `secret${steering}end`
  const bad = ['\x1b', '\x07', '\x9b', '\x7f', '\u202e']

  test.each([
    ['get', ['get', 'demo'], { ...credential, token: hostile }],
    ['get -o field', ['get', 'demo', '-o', 'field=x'], { ...credential, fields: { x: hostile } }],
    ['get -o env', ['get', 'demo', '-o', 'env'], { ...credential, fields: { password: hostile } }],
    ['signing-key', ['signing-key'], { ...key, public_key: hostile }],
    ['signing-key --private', ['signing-key', '--private'], { ...key, private_key: hostile }],
    [
      'audit',
      ['audit', '--limit', '1'],
      [{ timestamp: hostile, action: hostile, outcome: hostile, actor: '' }],
    ],
    [
      'pending',
      ['pending'],
      [{ id: hostile, name: hostile, scopes: [], created_at: hostile, status: hostile }],
    ],
    [
      'status',
      ['status'],
      { name: hostile, id: hostile, scopes: [], active_credentials: [], pending_requests: [] },
    ],
  ])('%s does not obey the server', async (_, argv, reply) => {
    const server = await scripted(json(200, reply))
    close = server.close
    const given = { ...env, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: 'ckr_hostile' }
    const { stdout, stderr } = await runCli(argv, { env: { ...given, NO_COLOR: '1' }, tty: true })
    expect(stdout).toContain('\ufffd')
    for (const one of bad) expect(stdout + stderr).not.toContain(one)
  })

  test('get gives a program the bytes of the secret as they are', async () => {
    expect((await ask({ ...credential, token: hostile }, 'get', 'demo')).stdout).toBe(`${hostile}\n`)
  })

  test.each([
    ['get -o json', ['get', 'demo', '-o', 'json'], { ...credential, token: hostile }],
    ['pending --json', ['pending', '--json'], [{ id: hostile }]],
    ['audit --json', ['audit', '--json', '--limit', '1'], [{ action: hostile }]],
    ['an error', ['status', '--json'], { error: { code: 'not_allowed', message: hostile } }, 403],
  ])('%s is JSON with the same value and without the characters', async (_, argv, reply, status = 200) => {
    const server = await scripted(json(status, reply))
    close = server.close
    const given = { ...env, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: 'ckr_hostile' }
    const { stdout, stderr } = await runCli(argv, { env: given })
    for (const one of bad) expect(stdout + stderr).not.toContain(one)
    expect(JSON.stringify(JSON.parse(stdout + stderr))).toContain(JSON.stringify(hostile))
  })
})
