import { existsSync } from 'node:fs'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { json, problem, scripted } from '../support/scripted-server.ts'
import { newHome, runCli, spawnCli } from './support.ts'

const CREDS = '-----BEGIN-----\nit\'s "$HOME" `id` {token}\n-----END-----\n'
const ISSUED = {
  id: 'cred_1',
  token: '{}',
  backend: 'bus',
  scopes: [],
  fields: { creds: CREDS, url: 'nats://bus.example', user: 'u1' },
  created_at: '2026-01-01T00:00:00.000Z',
  expires_at: '2026-01-01T00:10:00.000Z',
}
const ENVIRONMENT = {
  NATS_CREDS: { file: '{creds}' },
  NATS_URL: '{url}',
  NATS_USER: '<{user}>',
  NATS_TOKEN: '{no}',
}

let env: Record<string, string>
beforeAll(async () => {
  env = (await newHome()).env
})

/** A server with one backend, whose kind wants a file. */
async function startServer() {
  const server = await scripted((request, response) => {
    if (request.url === '/v1/runs') return problem(404, 'not_found')(request, response)
    const body = request.method === 'POST' ? ISSUED : { id: 'bus', environment: ENVIRONMENT }
    return json(200, body)(request, response)
  })
  onTestFinished(async () => void (await server.close()))
  return { ...env, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: `ckr_${'0'.repeat(48)}` }
}

test('run writes what the kind wants in a file, which is private and removed at the end', async () => {
  const script =
    'printf %s "$NATS_CREDS" && echo && stat -Lc %a "$NATS_CREDS" && cat "$NATS_CREDS" && env | grep -E "^(NATS_[TU]|BUS_)"'
  const end = await spawnCli(['run', '--backend', 'bus', '--', 'sh', '-c', script], {
    env: await startServer(),
  }).ended
  expect(end).toMatchObject({ code: 0, stderr: '' })
  const [path = '', mode, ...rest] = end.stdout.split('\n')
  expect([mode, existsSync(path)]).toEqual(['600', false])
  expect(rest.slice(0, 3).join('\n')).toBe(CREDS.trim())
  expect(rest.slice(3).sort()).toEqual(['', 'NATS_URL=nats://bus.example', 'NATS_USER=<u1>'])
})

test('get -o env prints what needs no file, and says which variables only run sets', async () => {
  const { code, stdout, stderr } = await runCli(['get', 'bus', '-o', 'env'], { env: await startServer() })
  expect(code).toBe(0)
  const names = [...stdout.matchAll(/^export (\w+)='/gm)].map(([, name]) => name)
  expect(names).toEqual(['BUS_CREDS', 'BUS_URL', 'BUS_USER'])
  expect(stderr).toBe(
    'mayfly: bus: not set without a secret for the same program: NATS_URL, NATS_USER.\n' +
      'Not printed: NATS_CREDS. Only `mayfly run --backend bus` writes the file.\n',
  )
})
