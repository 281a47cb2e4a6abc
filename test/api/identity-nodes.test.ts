import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { entry, exchange, template, workload } from '../support/keyless.ts'

let one: TestApp
let two: TestApp
beforeAll(async () => {
  one = await startApp({ dialect: 'postgres' })
  two = await startApp({
    databaseUrl: one.databaseUrl ?? '',
    masterKeyFile: join(one.directory, 'master.key'),
  })
  const trusted = { identities: [entry('ci', { agent: template('ci-{run_id}') })], platforms: [] }
  for (const app of [one, two]) app.core.identities.setTrusted(trusted)
})
afterAll(async () => {
  await two.close()
  await one.close()
})

const nodes = () => [one, two]

test('a token that one node has taken is refused at the other, also at the same moment', async () => {
  const token = workload(one, { run_id: '1' })
  expect((await exchange(one, token)).status).toBe(200)
  expect((await exchange(two, token)).body.error).toBe('invalid_grant')
  const another = workload(one, { run_id: '1' })
  const replies = await Promise.all([...nodes(), ...nodes()].map((app) => exchange(app, another)))
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400])
})

test('jobs that log in at both nodes at once are one agent', async () => {
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      exchange(n % 2 === 0 ? one : two, workload(one, { run_id: 'race' })),
    ),
  )
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
  expect(new Set(replies.map(({ body }) => decodeJwt(body.access_token).sub)).size).toBe(1)
  const { body: created } = await one.local.get('/v1/admin/audit?agent=ci-race&action=agent.created')
  expect(created).toHaveLength(1)
  // Asked for at both nodes at once, its signing key is one.
  const token = replies[0]?.body.access_token
  const keys = await Promise.all(
    [...nodes(), ...nodes()].map((app) => app.as(token).get('/v1/signing-key?private_key=false')),
  )
  expect(new Set(keys.map(({ status, body }) => `${status} ${body.key_id}`)).size).toBe(1)
})

test('what ends a login at one node ends it at the other', async () => {
  const first = await exchange(one, workload(one, { run_id: 'end' }))
  const second = await exchange(two, workload(one, { run_id: 'end' }))
  const [a, b] = [first.body.access_token, second.body.access_token]
  expect((await two.as(a).get('/v1/status')).status).toBe(200)
  expect((await one.as(a).delete('/v1/login')).status).toBe(204)
  expect((await two.as(a).get('/v1/status')).status).toBe(401)
  expect((await one.as(b).get('/v1/status')).status).toBe(200)
  expect((await two.as(b).delete('/v1/login')).status).toBe(204)
  expect((await one.as(b).get('/v1/status')).status).toBe(401)
  expect((await one.local.get('/v1/admin/agents/ci-end')).status).toBe(404)
})
