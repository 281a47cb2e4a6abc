import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectNoSecret, runCli, startWorld, type World } from './support.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })
const issue = async () => (await world.agent.client.post('/api/v1/credentials', { backend: 'demo' })).body

test('ls with every filter, and never a secret', async () => {
  const [first, second] = [await issue(), await issue()]
  const read = async (...argv: string[]) =>
    JSON.parse((await mayfly('tokens', 'ls', '--json', ...argv)).stdout).map((row: { id: string }) => row.id)
  expect(await read()).toEqual([second.id, first.id])
  expect(await read('-n', '1')).toEqual([second.id])
  expect(await read('--agent', world.agent.name, '--backend', 'demo', '--status', 'active')).toHaveLength(2)
  expect(await read('--status', 'revoked')).toEqual([])
  expect(await read('--agent', 'nobody')).toEqual([])
  const text = (await mayfly('tokens', 'ls')).stdout
  expect(text).toMatch(new RegExp(`^${first.id}  ${world.agent.name}  demo +\\* +active`, 'm'))
  expectNoSecret(text, first.token, second.token)
})

test('revoke ends them at the server', async () => {
  const [first, second] = [await issue(), await issue()]
  const ended = await mayfly('tokens', 'revoke', first.id, second.id, '--json')
  expect(JSON.parse(ended.stdout)).toEqual({ revoked: [first.id, second.id] })
  const { body } = await world.app.admin('GET', '/v1/admin/tokens?status=revoked')
  expect(body.map((row: { id: string }) => row.id)).toEqual([second.id, first.id])
})

test('an unknown id: reports the revocations that were done before it', async () => {
  const { id } = await issue()
  const ended = await mayfly('tokens', 'revoke', id, `cred_${'0'.repeat(26)}`)
  expect([ended.code, ended.stdout]).toEqual([1, ''])
  expect(ended.stderr).toMatch(
    new RegExp(`^Revoked before the error: ${id}\\.\nmayfly: There is no such credential\\.`),
  )
})

test.each([
  [['tokens', 'ls', '--status', 'gone'], 2],
  [['tokens', 'ls', '--limit', '0'], 2],
  [['tokens', 'revoke'], 2],
  [['tokens', 'revoke', '..'], 2],
  [['tokens'], 2],
])('wrong usage: %j', async (argv, code) => {
  expect((await mayfly(...argv)).code).toBe(code)
})

test('without the scope, names it', async () => {
  for (const [argv, scope] of [
    [['tokens', 'ls'], 'admin:tokens:read'],
    [['tokens', 'revoke', `cred_${'0'.repeat(26)}`], 'admin:tokens:write'],
  ] as const) {
    const ended = await runCli(argv, { env: world.env })
    expect([ended.code, ended.stderr]).toEqual([5, expect.stringContaining(scope)])
  }
})
