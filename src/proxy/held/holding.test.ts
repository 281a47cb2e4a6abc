import { expect, test, vi } from 'vitest'
import { pause } from '../../client/abort.ts'
import { createCuts } from './cuts.ts'
import { createEnds } from './ends.ts'
import { createHolding, type Holding } from './holding.ts'
import type { Issued } from './issue.ts'
import { keepRenewed } from './renew.ts'

const START = 1_800_000_000_000

function issued(id: string, createdAt = START, lifeMs = 60_000, age: () => number = () => 0): Issued {
  return {
    credential: {
      ...{
        id,
        token: 'secret',
        backend: 'orders',
        scopes: [],
        created_at: new Date(createdAt).toISOString(),
      },
      expires_at: new Date(createdAt + lifeMs).toISOString(),
    } as unknown as Issued['credential'],
    uses: [],
    live: {
      ...{ state: 'live', credentialId: id, secrets: new Map(), open: new Map() },
      expiresAt: createdAt + lifeMs,
    },
    lifeMs,
    age,
  }
}

function holdingOf(first: Issued, state: { isSure?: boolean; over?: string; behind?: string } = {}) {
  const cuts = createCuts()
  const revoked: string[] = []
  const unclear: string[] = []
  const holding = createHolding({
    ...{ name: 'orders', type: 'postgres', first, placeholders: new Map(), cuts },
    sign: { isSure: () => state.isSure ?? true },
    whyOver: () => state.over,
    whyUnsure: () => state.behind,
    revoked: ({ name }) => revoked.push(name),
    unclear: (_, id) => unclear.push(id),
  })
  return { holding, cuts, revoked, unclear }
}

test('a credential that the server no longer shows was revoked, and its connections are cut', () => {
  const { holding, cuts, revoked } = holdingOf(issued('cred_1'))
  const destroyed = vi.fn()
  cuts.track('cred_1', destroyed)
  holding.compare(new Set(['cred_1']), START + 100)
  expect(revoked).toEqual([])
  holding.compare(new Set(), START + 200)
  expect([revoked, destroyed.mock.calls.length]).toEqual([['orders'], 1])
  expect(holding.now()).toMatchObject({ state: 'unsure' })
})

test('a new one that the server has not shown yet may live, for so long as that may take', () => {
  const { holding, revoked } = holdingOf(issued('cred_1'))
  holding.compare(new Set(), START + 4_000)
  expect([revoked, holding.now().state]).toEqual([[], 'live'])
  holding.compare(new Set(), START + 5_001)
  expect(revoked).toEqual(['orders'])
})

test('near its time only the server knows why it ended', () => {
  const { holding, revoked, unclear } = holdingOf(issued('cred_1', START, 60_000, () => 57_000))
  holding.compare(new Set(['cred_1']), START)
  holding.compare(new Set(), START + 57_000)
  expect([revoked, unclear]).toEqual([[], ['cred_1']])
})

test('after a renewal new requests get the new one, and the old one lives on to its own end', () => {
  let age = 0
  const { holding, cuts } = holdingOf(issued('cred_1', START, 60_000, () => age))
  const destroyed: string[] = []
  cuts.track('cred_1', () => destroyed.push('cred_1'))
  holding.renew(issued('cred_2', START + 40_000))
  cuts.track('cred_2', () => destroyed.push('cred_2'))
  expect(holding.now()).toMatchObject({ credentialId: 'cred_2' })
  age = 59_999
  holding.expire()
  expect(destroyed).toEqual([])
  age = 60_000
  holding.expire()
  expect(destroyed).toEqual(['cred_1'])
  expect(holding.end('It was revoked.')).toEqual(['cred_2'])
  expect(destroyed).toEqual(['cred_1', 'cred_2'])
  expect(holding.now()).toEqual({ state: 'ended', why: 'It was revoked.' })
})

test('expiry follows our own clock', () => {
  const { holding } = holdingOf(issued('cred_1', START, 60_000, () => 60_000))
  expect(holding.now().state).toBe('unsure')
})

test.each([
  [{ isSure: false }, 'unsure'],
  [{ behind: 'Not recorded.' }, 'unsure'],
  [{ over: 'The run has ended.' }, 'ended'],
  [{ over: 'The run has ended.', isSure: false }, 'ended'],
])('serves nothing new with %j', (state, wanted) => {
  expect(holdingOf(issued('cred_1'), state).holding.now().state).toBe(wanted)
})

function endsWith(status: string, signal: AbortSignal) {
  const revoke = vi.fn(async () => undefined)
  const credential = vi.fn(async () => ({ status }))
  const warned: string[] = []
  const ends = createEnds({
    client: { credential, revoke } as never,
    log: { warn: (text) => warned.push(text) },
    signal,
  })
  return { ends, revoke, credential, warned }
}

test('after a revocation the run gets no other of that backend, also for another of its credentials', async () => {
  const over = new AbortController()
  const { ends, revoke, warned } = endsWith('revoked', over.signal)
  const { holding: one } = holdingOf(issued('cred_1'))
  const { holding: other } = holdingOf(issued('cred_2'))
  expect(await ends.mayRenew(one)).toBe(true)
  ends.revoked(one)
  ends.revoked(one)
  expect(await ends.mayRenew(one)).toBe(false)
  expect(await ends.mayRenew(other)).toBe(false)
  expect(warned).toHaveLength(1)
  expect(revoke).toHaveBeenCalledTimes(1)
})

test.each([
  ['expired', true],
  ['revoked', false],
])('where it is unclear the server is asked: %s', async (status, renews) => {
  const over = new AbortController()
  const { ends, credential } = endsWith(status, over.signal)
  const { holding } = holdingOf(issued('cred_1'))
  ends.unclear(holding, 'cred_1')
  expect(await ends.mayRenew(holding)).toBe(renews)
  expect(credential).toHaveBeenCalledTimes(1)
})

const renewing = (holding: Holding, wish: Partial<Parameters<typeof keepRenewed>[1]>, signal: AbortSignal) =>
  keepRenewed(
    holding,
    {
      issue: async () => issued('cred_2'),
      mayRenew: async () => true,
      discard: () => {},
      onRenewed: () => {},
      log: { warn: () => {} },
      ...wish,
    },
    signal,
  )

test('renews at two thirds of a life, again after a failure, and says each once', async () => {
  vi.useFakeTimers()
  try {
    const began = Date.now()
    const { holding } = holdingOf(issued('cred_1', began, 30_000, () => Date.now() - began))
    const over = new AbortController()
    const warned: string[] = []
    let tries = 0
    const at: number[] = []
    const work = renewing(
      holding,
      {
        log: { warn: (text) => warned.push(text) },
        issue: async () => {
          at.push(Date.now() - began)
          tries += 1
          if (tries < 3) throw new Error('a secret that must not be said')
          return issued('cred_2', Date.now(), 3_600_000)
        },
      },
      over.signal,
    ).catch(() => {})
    await vi.advanceTimersByTimeAsync(30_000)
    expect(at[0]).toBe(20_000)
    expect(at).toHaveLength(3)
    expect(at[2]).toBeLessThan(30_000)
    expect(warned).toHaveLength(2)
    expect(warned.join()).not.toContain('secret that')
    over.abort(new Error('over'))
    await work
  } finally {
    vi.useRealTimers()
  }
})

test('what was issued while the backend was revoked is given back', async () => {
  const { holding } = holdingOf(issued('cred_1', START, 3_000, () => 3_000))
  const discarded: string[] = []
  const answers = [true, false]
  await renewing(
    holding,
    {
      mayRenew: async () => answers.shift() ?? false,
      discard: ({ live }) => discarded.push(live.credentialId),
      onRenewed: () => expect.unreachable(),
    },
    new AbortController().signal,
  )
  expect(discarded).toEqual(['cred_2'])
  await pause(0, undefined)
})
