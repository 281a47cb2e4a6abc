import { expect, onTestFinished, test } from 'vitest'
import { cut, json, problem, scripted } from '../../../test/support/scripted-server.ts'
import { createClient } from '../../client/client.ts'
import { type IssueEvent, trackIssued } from './issued-credentials.ts'
import type { OpenRun } from './open-run.ts'

const ISSUED = {
  id: 'cred_1',
  token: 'x',
  backend: 'demo',
  scopes: [],
  created_at: '2026-01-01T00:00:00.000Z',
  expires_at: '2026-01-01T00:10:00.000Z',
}

/** With a run, as `openRun` would have begun it. */
async function trackingOfRun(...answers: Parameters<typeof scripted>) {
  const server = await scripted(...answers)
  onTestFinished(async () => void (await server.close()))
  const auth = { kind: 'bearer', token: 'ckr_x' } as const
  const client = createClient({ server: server.url, auth, retries: 0 })
  const end: OpenRun['end'] = (options) => client.runs.end('run_1', options)
  const issued = trackIssued(client, Date.now, () => {}, Promise.resolve({ id: 'run_1', end }))
  const seen = () => server.seen.map(({ method, url }) => `${method} ${url}`)
  return { server, issued, seen }
}

const [ISSUE, END] = ['POST /api/v1/credentials', 'DELETE /v1/runs/run_1']
const revokeIt = (id: string) => `DELETE /api/v1/credentials/${id}`

test('with a run, revokes all by one request: the end of the run', async () => {
  const other = json(201, { ...ISSUED, id: 'cred_2' })
  const { server, issued, seen } = await trackingOfRun(json(201, ISSUED), other, cut, json(204, {}))
  await issued.obtain({ backend: 'demo' })
  await issued.obtain({ backend: 'demo' })
  await expect(issued.obtain({ backend: 'demo' })).rejects.toThrow('Cannot reach')
  expect(issued.unknown()).toEqual(['demo'])
  expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({ backend: 'demo', run: 'run_1' })
  expect(await issued.revokeAll(AbortSignal.timeout(10_000))).toBeUndefined()
  expect(seen()).toEqual([ISSUE, ISSUE, ISSUE, END])
  expect(issued.outcomes()).toMatchObject([
    { id: 'cred_1', revoked: true },
    { id: 'cred_2', revoked: true },
  ])
  expect(issued.unknown()).toEqual([])
})

test('with a run, ends it again when that was lost, and reports nothing revoked before', async () => {
  const { issued, seen } = await trackingOfRun(json(201, ISSUED), cut, json(204, {}))
  await issued.obtain({ backend: 'demo' })
  const revoking = issued.revokeAll(AbortSignal.timeout(10_000))
  await expect.poll(() => seen().length, { interval: 5 }).toBe(2)
  expect(issued.outcomes()).toMatchObject([{ revoked: false }])
  expect(await revoking).toBeUndefined()
  expect(seen()).toEqual([ISSUE, END, END])
  expect(issued.outcomes()).toMatchObject([{ revoked: true }])
})

test('with a run that a node of an older version does not know, revokes each by itself', async () => {
  const { issued, seen } = await trackingOfRun(json(201, ISSUED), problem(404, 'not_found'), json(200, {}))
  await issued.obtain({ backend: 'demo' })
  expect(await issued.revokeAll(AbortSignal.timeout(10_000))).toBeUndefined()
  expect(seen()).toEqual([ISSUE, END, revokeIt('cred_1')])
  expect(issued.outcomes()).toMatchObject([{ revoked: true }])
})

test('with a run whose end is refused, and its credentials too, says which are left, and why', async () => {
  const { issued, seen } = await trackingOfRun(json(201, ISSUED), problem(401, 'unauthorized'))
  await issued.obtain({ backend: 'demo' })
  const failure = await issued.revokeAll(AbortSignal.timeout(2_500))
  expect(failure).toMatchObject({ code: 'unauthorized' })
  expect(seen().slice(0, 3)).toEqual([ISSUE, END, revokeIt('cred_1')])
  expect(issued.outcomes()).toMatchObject([{ id: 'cred_1', revoked: false }])
})

async function tracking(...answers: Parameters<typeof scripted>) {
  const server = await scripted(...answers)
  onTestFinished(async () => void (await server.close()))
  const auth = { kind: 'bearer', token: 'ckr_x' } as const
  const client = createClient({ server: server.url, auth, retries: 0 })
  const events: (IssueEvent & { readonly sent: number })[] = []
  const issued = trackIssued(client, Date.now, (event) => events.push({ ...event, sent: server.seen.length }))
  return { server, events, issued }
}

test('tells of a request and its key before it is sent, and how it ended', async () => {
  const { server, events, issued } = await tracking(
    json(201, ISSUED),
    json(200, {}),
    problem(403, 'not_allowed'),
  )
  const request = { backend: 'demo' }
  await issued.obtain(request)
  await issued.revoke('cred_1')
  await expect(issued.obtain(request)).rejects.toThrow('Says not_allowed.')
  const [first, , second] = server.seen.map(({ headers }) => headers['idempotency-key'])
  expect(events).toEqual([
    { asked: first, request, sent: 0 },
    { obtained: 'cred_1', key: first, sent: 1 },
    { revoked: 'cred_1', sent: 2 },
    { asked: second, request, sent: 2 },
    { refused: second, sent: 3 },
  ])
})

test('repeats a request whose reply was lost until a reply says what became of it', async () => {
  const away = [problem(503, 'store_unavailable'), problem(401, 'unauthorized')] as const
  const { server, issued } = await tracking(cut, ...away, json(201, ISSUED), json(200, {}))
  await expect(issued.obtain({ backend: 'demo' })).rejects.toThrow('Cannot reach')
  expect(await issued.revokeAll(AbortSignal.timeout(10_000))).toBeUndefined()
  expect(issued.outcomes()).toMatchObject([{ id: 'cred_1', revoked: true }])
  expect(issued.unknown()).toEqual([])
  const keys = server.seen.slice(0, 4).map(({ headers }) => headers['idempotency-key'])
  expect([keys.length, new Set(keys).size]).toEqual([4, 1])
})

test.each([
  ['no life', ISSUED.created_at],
  ['an end before its beginning', '2025-12-31T00:00:00.000Z'],
  ['an end that is no time', 'never'],
])('refuses and revokes a credential with %s', async (_, expires_at) => {
  const { server, issued } = await tracking(json(201, { ...ISSUED, expires_at }), json(200, {}))
  await expect(issued.obtain({ backend: 'demo' })).rejects.toThrow(
    'The server sent a credential of demo that has expired.',
  )
  expect(server.seen.map(({ method }) => method)).toEqual(['POST', 'DELETE'])
  expect(issued.outcomes()).toMatchObject([{ id: 'cred_1', revoked: true }])
})
