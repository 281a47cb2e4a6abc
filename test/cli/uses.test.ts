import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner } from './run-support.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

/** What an administrator says of the proxy, and what it told the server of a run. */
let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })
const usesOf = async (name: string) => (await world.app.admin('GET', `/v1/admin/backends/${name}`)).body.uses
const RULES = { deny: [{ methods: ['DELETE'], path: '/v1/**', caseless: true }] }

async function fileOf(text: string): Promise<string> {
  const path = join(world.home, `uses-${crypto.randomUUID()}.json`)
  await writeFile(path, text)
  return path
}

const add = (name: string, ...more: string[]) =>
  mayfly('backend', 'add', 'jwt', name, '--audience', 'a', ...more)

test('backend add and update take rules of use from a file, as curl does, and from standard input', async () => {
  const file = await fileOf(JSON.stringify(RULES))
  expect(await add('with-uses', '--uses', `@${file}`)).toMatchObject({ code: 0 })
  expect(await usesOf('with-uses')).toEqual(RULES)
  expect((await mayfly('backend', 'show', 'with-uses')).stdout).toContain('"path":"/v1/**"')
  expect(await add('without-uses')).toMatchObject({ code: 0 })
  expect(await usesOf('without-uses')).toBeUndefined()
  expect(await mayfly('backend', 'update', 'without-uses', '--uses', file)).toMatchObject({ code: 0 })
  expect(await usesOf('without-uses')).toEqual(RULES)
  const allow = { allow: [{ methods: ['*'], path: '/**' }] }
  const argv = ['backend', 'update', 'without-uses', '--uses', '-']
  expect(await spawnCli(argv, { env, stdin: JSON.stringify(allow) }).ended).toMatchObject({ code: 0 })
  expect(await usesOf('without-uses')).toEqual(allow)
})

test('other changes leave them, and --no-uses forgets them', async () => {
  const file = await fileOf(JSON.stringify(RULES))
  await add('kept', '--uses', file)
  await mayfly('backend', 'update', 'kept', '--description', 'more')
  expect(await usesOf('kept')).toEqual(RULES)
  expect(await mayfly('backend', 'update', 'kept', '--no-uses')).toMatchObject({ code: 0 })
  expect(await usesOf('kept')).toBeUndefined()
})

test.each([
  ['no JSON', '{"deny": '],
  ['no object', '[]'],
  ['a field that there is not', '{"denied": []}'],
  ['a pattern that is none', '{"deny": [{"methods": ["*"], "path": "/a/../b"}]}'],
])('a file with %s changes nothing, and nothing of it is repeated', async (_, text) => {
  const name = `bad-${crypto.randomUUID()}`
  const file = await fileOf(text)
  const added = await add(name, '--uses', `@${file}`)
  expect([added.code, added.stdout], added.stderr).toEqual([2, ''])
  expect(added.stderr).not.toContain('/a/../b')
  expect((await world.app.admin('GET', `/v1/admin/backends/${name}`)).status).toBe(404)
})

test('a file that there is not is an error that names it', async () => {
  const missing = join(world.home, 'missing.json')
  const added = await add('missing', '--uses', `@${missing}`)
  expect([added.code !== 0, added.stderr]).toEqual([true, expect.stringContaining(missing)])
})

const HOSTILE = '/%1b[2J<script>alert(1)</script>'
const LINE = {
  at: '2026-11-21T10:15:00.000Z',
  ...{ protocol: 'http', method: 'GET', authority: 'api.example.com:443', path: '/v1/models', status: 200 },
  ...{ bytes_sent: 0, bytes_received: 512, duration_ms: 83, decision: 'injected', reason: null },
  ...{ backend: 'demo', credential_id: null, placeholder: 'demo.token', redacted: 2 },
}
const MISUSED = { ...LINE, decision: 'misused', reason: 'elsewhere', path: HOSTILE, status: 403, redacted: 0 }
const REFUSED = {
  ...{ ...LINE, decision: 'refused', reason: 'path_not_allowed', path: null, status: 403, redacted: 0 },
  method: 'POST',
}

async function recorded() {
  const { agent, env: own } = await newRunner(world)
  const run: string = (await agent.client.post('/v1/runs', {})).body.id
  const body = { batch: '06dzw5k9q2v6x1m8t3c7n4p0hb', requests: [LINE, REFUSED, MISUSED] }
  expect((await agent.client.post(`/v1/runs/${run}/requests`, body)).status).toBe(204)
  return { own, run }
}

test('runs requests shows what the proxy of a run did, and --refused what it did not', async () => {
  const { own, run } = await recorded()
  const all = await runCli(['runs', 'requests', run], { env: own })
  expect(all.code, all.stderr).toBe(0)
  const [heading, ...rows] = all.stdout.trimEnd().split('\n')
  expect(heading).toMatch(/^TIME +DECISION +STATUS +MS +BACKEND +REQUEST$/)
  expect(rows).toHaveLength(3)
  expect(all.stdout).toMatch(/ injected, 2 masked +200 +83 +demo +GET api\.example\.com:443\/v1\/models$/m)
  expect(all.stdout).toMatch(/ refused, path not allowed +403 +83 +demo +POST api\.example\.com:443$/m)
  expect(all.stdout).toContain(HOSTILE)
  const refused = await runCli(['runs', 'requests', run, '--refused', '--json'], { env: own })
  const decisions = JSON.parse(refused.stdout).map((one: { decision: string }) => one.decision)
  expect(decisions.sort()).toEqual(['misused', 'refused'])
  const shown = await runCli(['runs', 'show', run], { env: own })
  expect(shown.stdout).toMatch(/^requests: +3 \(2 refused, 2 secrets masked\)$/m)
  expect(shown.stdout).toMatch(/^live credentials: +0$/m)
  const misused = await mayfly('audit', '--action', 'placeholder.misused')
  expect(misused.stdout).toMatch(new RegExp(`  ${run}  GET  api\\.example\\.com:443  denied$`, 'm'))
})

test('runs requests of nothing says so, and of another agent is refused unless an administrator asks', async () => {
  const { run } = await recorded()
  const { agent, env: other } = await newRunner(world)
  const empty: string = (await agent.client.post('/v1/runs', {})).body.id
  const none = await runCli(['runs', 'requests', empty], { env: other })
  expect(none).toMatchObject({ code: 0, stdout: '', stderr: 'No requests.\n' })
  const foreign = await runCli(['runs', 'requests', run], { env: other })
  expect(foreign).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no such run.') })
  expect((await mayfly('runs', 'requests', run, '--all-agents', '--json')).stdout).toContain('"misused"')
})
