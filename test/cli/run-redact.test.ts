import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { json, scripted } from '../support/scripted-server.ts'
import { newHome, spawnCli } from './support.ts'

const ISSUED = {
  id: 'cred_1',
  token: 'a-long-token',
  backend: 'demo',
  scopes: [],
  created_at: '2026-01-01T00:00:00.000Z',
  expires_at: '2026-01-01T00:10:00.000Z',
}
const PARTS = 'echo "$DEMO_PASSPHRASE $DEMO_PASSWORD $DEMO_USERNAME"'

let env: Record<string, string>
beforeAll(async () => {
  env = (await newHome()).env
})

/** `mayfly run` against a server whose credential has these parts. */
async function run(fields: Record<string, string | number>, argv: readonly string[]) {
  const server = await scripted((request, response) => {
    const answer = request.url === '/v1/runs' ? { id: 'run_1', heartbeat: '10s' } : { ...ISSUED, fields }
    json(200, request.method === 'POST' ? answer : {})(request, response)
  })
  onTestFinished(async () => void (await server.close()))
  const login = { MAYFLY_SERVER: server.url, MAYFLY_TOKEN: `ckr_${'0'.repeat(48)}` }
  return spawnCli(['run', '--backend', 'demo', ...argv, '--', 'sh', '-c', PARTS], {
    env: { ...env, ...login },
  }).ended
}

test('--redact warns about each secret that is too short to be redacted', async () => {
  const fields = { username: 'u1', passphrase: 1234, account: '', password: 'long-enough' }
  expect(await run(fields, ['--redact'])).toEqual({
    code: 0,
    signal: null,
    stdout: '1234 [redacted] u1\n',
    stderr: 'mayfly: --redact does not hide "passphrase" of demo: it has fewer than 8 characters.\n',
  })
})

test('without --redact, or with secrets that are long enough, there is no warning', async () => {
  expect(await run({ username: 'u1', passphrase: 1234, password: 'short' }, [])).toMatchObject({
    code: 0,
    stderr: '',
  })
  expect(await run({ username: 'u1', password: '12345678' }, ['--redact'])).toMatchObject({
    stdout: ' [redacted] u1\n',
    stderr: '',
  })
})

test('--redact hides the logins that --keep-login leaves', async () => {
  const server = await scripted((request, response) => {
    const answer = request.url === '/v1/runs' ? { id: 'run_1', heartbeat: '10s' } : { ...ISSUED, fields: {} }
    json(200, request.method === 'POST' ? answer : {})(request, response)
  })
  onTestFinished(async () => void (await server.close()))
  const token = `ckr_${'0'.repeat(48)}`
  const logins = { MAYFLY_SERVER: server.url, MAYFLY_TOKEN: token, MAYFLY_ID_TOKEN: 'eyJ.of-this.job' }
  const argv = ['run', '--redact', '--keep-login', '--env', 'DEMO=demo', '--', 'sh', '-c']
  const print = 'echo "$MAYFLY_TOKEN $MAYFLY_ID_TOKEN"'
  const { stdout } = await spawnCli([...argv, print], { env: { ...env, ...logins } }).ended
  expect(stdout).toBe('[redacted] [redacted]\n')
})
