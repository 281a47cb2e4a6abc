import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newSigner } from '../support/identity-tokens.ts'
import { exchange, workload } from '../support/keyless.ts'
import { runCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

/** What waits of the agents of a platform, for an administrator with the command. */
const ISSUER = 'https://agents.test'
const AUDIENCE = 'https://mayfly.test'
const acme = newSigner('ES256')
let world: World
let env: Record<string, string>
beforeAll(async () => {
  const platforms = [{ name: 'acme', issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [acme.jwk] } }]
  world = await startWorld({ yaml: JSON.stringify({ platforms }) })
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })

async function comeIn(sub: string, claims: Record<string, unknown> = {}) {
  const token = workload(world.app, { iss: ISSUER, aud: AUDIENCE, sub, ...claims }, 300, acme)
  const { body } = await exchange(world.app, token)
  const agentId = String(decodeJwt(body.access_token).sub)
  const { body: all } = await world.app.admin('GET', '/v1/admin/pending?limit=1000')
  const row = all.find((one: { agent_id: string }) => one.agent_id === agentId)
  return { scope: body.scope, id: row?.id as string, name: row?.name as string }
}

test('pending shows whom the token names, and steers no terminal with it', async () => {
  const claims = { team: 'red\u001b[2J\r\nforged: line', bidi: '\u202eabc' }
  const { id, name } = await comeIn('agent-1', claims)
  const list = await mayfly('pending')
  expect(list.stdout).toMatch(new RegExp(`^${id} +claim +${name} +\\(none\\) agent-1 +127\\.0\\.0\\.1`, 'm'))
  const { stdout } = await mayfly('pending', id)
  for (const line of [
    /^type: +claim: an agent of a platform, without rights$/m,
    /^platform: +acme$/m,
    /^issuer: +https:\/\/agents\.test$/m,
    /^subject: +agent-1$/m,
    /^claims: +\{"team":"red/m,
  ])
    expect(stdout).toMatch(line)
  expect(stdout).not.toMatch(/^forged/m)
  for (const steering of ['\u001b', '\u202e']) expect(stdout).not.toContain(steering)
  const json = JSON.parse((await mayfly('pending', id, '--json')).stdout)
  expect(json).toMatchObject({ type: 'claim', metadata: { subject: 'agent-1', claims } })
})

test('approve gives a claim what is named, and asks for it', async () => {
  const { id, name } = await comeIn('agent-2')
  const bare = await mayfly('approve', id, '--yes')
  expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining('asks for no scopes')])
  expect((await mayfly('approve', id, '--yes', '--scope', 'demo:x', '--fingerprint', 'x')).code).toBe(2)
  const yes = await runTyping(['approve', name, '--scope', 'demo:read'], env, [
    [new RegExp(`subject: +agent-2[\\s\\S]*Approve ${name} with demo:read\\? \\[y/N\\] $`), 'y'],
  ])
  expect([yes.code, yes.stdout]).toEqual([0, `Approved ${name}: demo:read.\n`])
  expect((await comeIn('agent-2')).scope).toBe('demo:read')
})

test('reject leaves it without rights', async () => {
  const { id, name } = await comeIn('agent-3')
  expect((await mayfly('reject', id)).stdout).toBe(`Rejected ${name}.\n`)
  expect(await comeIn('agent-3')).toMatchObject({ scope: '', id: undefined })
})
