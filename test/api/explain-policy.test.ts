import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

const YAML = `policies:
  - {name: ci, pattern: 'ci-*', scopes: ['demo:*'], deny: ['demo:secret'], auto_approve: true, max_agent_lifetime: 8h}
`

let app: TestApp
beforeAll(async () => {
  app = await startApp({ yaml: YAML })
})
afterAll(() => app.close())

const explain = (query: string) => app.admin('GET', `/v1/admin/policies/explain?${query}`)

test('explains which policy decides, which scopes it gives and for how long', async () => {
  expect((await explain('name=ci-1')).body).toEqual({
    name: 'ci-1',
    decision: 'wait',
    reason: 'The policy "ci" denies a scope that the request would grant.',
    policy: 'ci',
    scopes: ['demo:*'],
    expires_in: null,
    policies: [{ name: 'ci', pattern: 'ci-*', matches: true, decides: true }],
    warnings: ['The scope "demo:*" names no backend: there is none called "demo".'],
  })
  expect((await explain('name=CI-1&scope=demo:a&scope=demo:b&scope=demo:a')).body).toMatchObject({
    decision: 'approve',
    reason: null,
    expires_in: '8h',
    scopes: ['demo:a', 'demo:b'],
  })
  expect((await explain('name=other&scope=demo:a')).body).toMatchObject({
    decision: 'wait',
    policy: null,
    reason: 'No policy matches this name.',
    expires_in: null,
  })
})

test('explains that a taken name waits only where no policy approves', async () => {
  const [{ name }, other] = [await app.newAgent({ name: 'ci-taken' }), await app.newAgent({ name: 'taken' })]
  expect((await explain(`name=${name}&scope=demo:a`)).body).toMatchObject({
    decision: 'approve',
    reason: null,
  })
  expect((await explain(`name=${other.name}&scope=demo:a`)).body).toMatchObject({
    decision: 'wait',
    reason: expect.stringContaining('An agent with this name already exists.'),
  })
})

test('records and counts nothing but the request itself', async () => {
  await explain('name=ci-2&scope=demo:a')
  expect((await app.admin('GET', '/v1/admin/pending')).body).toEqual([])
  const { body } = await app.admin('GET', '/v1/admin/audit')
  expect(body.some(({ action }: { action: string }) => action.startsWith('enrollment.'))).toBe(false)
})

test.each([
  '',
  'name=',
  'name=a%20b',
  'name=x&scope=',
  'name=x&scope=!',
  'name=x&nope=1',
  `name=${'x'.repeat(300)}`,
])('refuses %j', async (query) => {
  expect([(await explain(query)).status, (await explain(query)).body.error.code]).toEqual([
    400,
    'invalid_request',
  ])
})

test('does not reveal taken names to an agent without the scope', async () => {
  const agent = await app.newAgent({ scopes: ['*'] })
  const reply = await agent.client.get('/v1/admin/policies/explain?name=ci-taken')
  expect([reply.status, reply.body.error.code]).toEqual([403, 'insufficient_scope'])
})
