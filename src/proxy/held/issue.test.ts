import { expect, onTestFinished, test } from 'vitest'
import { cut, json, problem, scripted } from '../../../test/support/scripted-server.ts'
import { createClient } from '../../client/client.ts'
import { issuerOf } from './issue.ts'

const ISSUED = {
  id: 'cred_1',
  token: 'secret',
  backend: 'demo',
  scopes: [],
  uses: [],
  created_at: '2026-01-01T00:00:00.000Z',
  expires_at: '2026-01-01T00:10:00.000Z',
}
const { token: _, ...ENDED } = ISSUED

async function issuing(...answers: Parameters<typeof scripted>) {
  const server = await scripted(...answers)
  onTestFinished(async () => void (await server.close()))
  const client = createClient({ server: server.url, auth: { kind: 'bearer', token: 'ckr_x' }, retries: 0 })
  let now = 0
  const clocks = { now: () => 1_000 + now, monotonic: () => now }
  const issue = issuerOf(client, { backend: 'demo', run: 'run_1' }, clocks)
  return {
    issue: () => issue(AbortSignal.timeout(10_000)),
    keys: () => server.seen.map(({ headers }) => headers['idempotency-key']),
    pass: (ms: number) => {
      now += ms
    },
  }
}

test('an answer that was lost is asked for again under its key, and its life counts from the first time', async () => {
  const { issue, keys, pass } = await issuing(cut, problem(503, 'store_unavailable'), json(201, ISSUED))
  await expect(issue()).rejects.toThrow('Cannot reach')
  pass(5_000)
  await expect(issue()).rejects.toThrow('store_unavailable')
  pass(5_000)
  const { live, age } = await issue()
  expect(new Set(keys()).size).toBe(1)
  expect([live.expiresAt, age()]).toEqual([601_000, 10_000])
})

test('a renewal and a request after a refusal are others', async () => {
  const { issue, keys } = await issuing(json(201, ISSUED), problem(403, 'not_allowed'), json(201, ISSUED))
  await issue()
  await expect(issue()).rejects.toThrow('not_allowed')
  await issue()
  expect([keys().length, new Set(keys()).size]).toEqual([3, 3])
})

test('one that ended while its answer was lost is not used: another is issued', async () => {
  const { issue, keys } = await issuing(cut, json(200, ENDED), json(201, { ...ISSUED, id: 'cred_2' }))
  await expect(issue()).rejects.toThrow('Cannot reach')
  expect((await issue()).credential.id).toBe('cred_2')
  expect(keys()[0]).toBe(keys()[1])
  expect(keys()[2]).not.toBe(keys()[1])
})
