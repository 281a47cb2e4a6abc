import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
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

/** A server that always gives this reply, and knows no runs. */
function serverOf(body: unknown) {
  const noRoute = json(404, { error: { code: 'not_found', message: 'There is no such route.' } })
  return scripted((request, response) =>
    (request.url === '/v1/runs' ? noRoute : json(200, body))(request, response),
  )
}

/** One command line against a server that always gives this reply. */
async function ask(body: unknown, ...argv: string[]): Promise<CliEnd> {
  const server = await serverOf(body)
  close = server.close
  return runCli(argv, { env: { ...env, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: 'ckr_hostile' }, cwd })
}

const credential = {
  id: 'cred_0123456789abcdefghjkmnpqrs',
  backend: 'PROMPT',
  scopes: [],
  token: 'secret',
  created_at: '2030-01-01T00:00:00.000Z',
  expires_at: '2030-01-01T00:10:00.000Z',
  ttl: '10m',
}

describe('variables', () => {
  const fields = { connect_prog: 'touch owned', password_command: 'touch owned', token: 't' }

  test.each([
    ['get', 'rsync', '-o', 'env'],
    ['get', 'rsync', '-o', 'dotenv'],
    ['get', 'demo', '--prefix', 'RSYNC', '-o', 'env'],
  ])('a field that could name a command gets no variable: %s %s %s %s', async (...argv) => {
    const end = await ask({ ...credential, fields }, ...argv)
    expect(end.stdout.replace('export ', '')).toBe("RSYNC_TOKEN='t'\n")
    expect(end.stderr).toContain('only with `run --env`: "connect_prog", "password_command".')
  })

  test('a command gets no variable of a field that could name a command, and a line says so', async () => {
    const end = await ask(
      { ...credential, fields },
      'run',
      '--backend',
      'restic',
      '--',
      'sh',
      '-c',
      'env > seen',
    )
    expect(end.code).toBe(0)
    expect(end.stderr).toContain(
      'restic: fields that mayfly puts into a variable only with `run --env`: "connect_prog"',
    )
    const seen = await readFile(join(cwd, 'seen'), 'utf8')
    expect(seen.match(/^RESTIC_.*$/gm)).toEqual(['RESTIC_TOKEN=t'])
  })
})

describe('an address of the user', () => {
  const environment = {
    VAULT_ADDR: 'https://evil.example',
    GITLAB_HOST: 'evil.example',
    PGHOST: '{host}',
    PGUSER: 'x',
  }
  const hostile = { ...credential, fields: { host: 'evil.example', password: 'p' }, environment }
  const own = {
    ...{ VAULT_ADDR: 'https://vault.example', VAULT_TOKEN: 'mine' },
    ...{ GITLAB_TOKEN: 'mine', PGHOST: 'db.example', PGPASSWORD: 'mine' },
  }
  const kept = 'demo: not set without a secret for the same program: VAULT_ADDR, GITLAB_HOST, PGHOST, PGUSER.'

  test('is not replaced by run without the secret that goes with it', async () => {
    const server = await serverOf(hostile)
    close = server.close
    const given = { ...env, ...own, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: 'ckr_hostile' }
    const end = await runCli(['run', '--backend', 'demo', '--', 'sh', '-c', 'env > seen'], {
      env: given,
      cwd,
    })
    expect(end.stderr).toContain(kept)
    const seen = await readFile(join(cwd, 'seen'), 'utf8')
    for (const [name, value] of Object.entries(own)) expect(seen).toContain(`${name}=${value}\n`)
    expect(seen).not.toMatch(/^(?!DEMO_).*evil/m)
  })

  test('is not replaced by get without the secret that goes with it', async () => {
    const end = await ask(hostile, 'get', 'demo', '-o', 'env')
    expect(end.stdout).toBe("export DEMO_HOST='evil.example'\nexport DEMO_PASSWORD='p'\n")
    expect(end.stderr).toContain(kept)
  })

  test('is replaced together with its secret, and a line says so', async () => {
    const whole = { ...hostile, environment: { PGHOST: '{host}', PGPASSWORD: '{password}' } }
    const server = await serverOf(whole)
    close = server.close
    const given = { ...env, ...own, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: 'ckr_hostile' }
    const end = await runCli(['run', '--backend', 'demo', '--', 'sh', '-c', 'env > seen'], {
      env: given,
      cwd,
    })
    expect(end.stderr).toBe('mayfly: demo: replaces what you had set: PGHOST, PGPASSWORD.\n')
    expect(await readFile(join(cwd, 'seen'), 'utf8')).toContain('PGPASSWORD=p\n')
  })
})

describe('variables of a kind', () => {
  const environment = {
    GIT_SSH_COMMAND: 'touch owned',
    LD_PRELOAD: '/tmp/owned.so',
    HTTPS_PROXY: 'http://evil.example',
    MAYFLY_TOKEN: '{secret}',
    'X_TOKEN;touch owned': 'x',
    SHOP_TOKEN: '$(touch owned)\'"; touch owned; {secret}',
  }

  test('a shell gets only those that the command knows, as they are', async () => {
    const { stdout, code } = await ask({ ...credential, environment }, 'get', 'demo', '-o', 'env')
    expect(code).toBe(0)
    const script = `${stdout}\nenv | grep -E '^(GIT|LD|HTTPS|MAYFLY|X|SHOP|DEMO)_'`
    const shown = await run('/bin/sh', ['-ec', script], { cwd, env: { PATH: env['PATH'] } })
    const value = '$(touch owned)\'"; touch owned; secret'
    expect(shown.stdout.trim().split('\n').sort()).toEqual(['DEMO_TOKEN=secret', `SHOP_TOKEN=${value}`])
    expect(await readdir(cwd)).toEqual([])
  })

  test('a command gets only those, and a line about each other', async () => {
    const end = await ask(
      { ...credential, environment },
      'run',
      '--backend',
      'demo',
      '--',
      'sh',
      '-c',
      'exit 3',
    )
    expect(end).toMatchObject({ code: 3, stdout: '' })
    expect(end.stderr.match(/demo names the variable "[^"]+"/g)?.map((line) => line.slice(24))).toEqual(
      Object.keys(environment)
        .slice(0, -1)
        .map((name) => JSON.stringify(name)),
    )
  })

  test('a kubeconfig that names a program reaches no command', async () => {
    const config = 'users: [{ name: u, user: { exec: { command: touch, args: [owned] } } }]'
    const hostile = { ...credential, fields: { config }, environment: { KUBECONFIG: { file: '{config}' } } }
    const end = await ask(hostile, 'run', '--backend', 'demo', '--', 'touch', 'ran')
    expect(end).toMatchObject({ code: 1, stdout: '' })
    expect(end.stderr).toContain('The kubeconfig holds more than a cluster and a login.')
    expect(await readdir(cwd)).toEqual([])
  })

  test.each([[{ A_TOKEN: 5 }], ['text'], [{ A_TOKEN: { file: null } }]])('%j are refused', async (wrong) => {
    const end = await ask(
      { ...credential, environment: wrong },
      'run',
      '--backend',
      'demo',
      '--',
      'touch',
      'ran',
    )
    expect(end).toMatchObject({ code: 1, stdout: '' })
    expect(end.stderr).toContain('The server sent variables that cannot be read.')
    expect(await readdir(cwd)).toEqual([])
  })
})
