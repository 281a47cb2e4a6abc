import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient, MayflyError, type RunEvent } from '../../src/client/client.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

const UNKNOWN = 'run_06dzw5k9q2v6x1m8t3c7n4p0hb'

/** One stream, read by the client. */
function follow(app: TestApp, agent: NewAgent, run: string, token = agent.token) {
  const ending = new AbortController()
  const client = createClient({ server: app.url, auth: { kind: 'bearer', token }, retries: 0 })
  const events = client.runs.events(run, { signal: ending.signal })
  const states = async function* () {
    for await (const event of events) if (event.kind === 'state') yield event
  }
  return { events, states: states(), stop: () => ending.abort(new Error('stopped')) }
}

async function next<T>(from: AsyncGenerator<T>): Promise<T> {
  const { value, done } = await from.next()
  if (done === true) throw new Error('the stream has ended')
  return value
}

describe.each(DIALECTS)('the events of a run on %s', (dialect) => {
  let app: TestApp
  let ada: NewAgent
  let bob: NewAgent
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    ada = await app.newAgent({ name: 'ada', scopes: ['orders'] })
    bob = await app.newAgent({ name: 'bob', scopes: ['orders'] })
  })
  afterAll(() => app.close())

  const start = async (agent = ada, body: object = {}): Promise<string> =>
    (await agent.client.post('/v1/runs', body)).body.id
  const issue = async (run: string | undefined, agent = ada, ttl?: string): Promise<string> => {
    const reply = await agent.client.post('/v1/credentials/orders', { run, ttl })
    expect(reply.status).toBe(200)
    return reply.body.id
  }
  const endedBy = async (states: AsyncGenerator<RunEvent & { kind: 'state' }>, gone: string) => {
    for (;;) {
      const state = await next(states)
      if (!state.credentials.includes(gone)) return state
    }
  }

  test('begin with its living credentials, and go on with what is added and what ends', async () => {
    const run = await start()
    const [one, other] = [await issue(run), await issue(run)]
    const foreign = [await issue(undefined), await issue(await start())]
    const { states, stop } = follow(app, ada, run)
    const first = await next(states)
    expect(first.run).toMatchObject({ state: 'running', reason: null, dead_at: expect.any(String) })
    expect([...first.credentials].sort()).toEqual([one, other].sort())
    const third = await issue(run)
    expect((await next(states)).credentials).toContain(third)
    for (const id of [...foreign, other])
      expect((await ada.client.delete(`/v1/active/${id}`)).status).toBe(204)
    const ended = await next(states)
    expect([...ended.credentials].sort()).toEqual([one, third].sort())
    stop()
  })

  test.each([
    ['its agent', (run: string) => ada.client.delete(`/v1/runs/${run}`), 'completed'],
    ['an administrator', (run: string) => app.local.delete(`/v1/admin/runs/${run}`), 'ended_by'],
  ] as const)('end with a last state when %s ends it', async (_, end, reason) => {
    const run = await start()
    await issue(run)
    const { events } = follow(app, ada, run)
    expect(await next(events)).toMatchObject({ kind: 'state', credentials: [expect.any(String)] })
    expect((await end(run)).status).toBe(204)
    const rest: RunEvent[] = []
    for await (const event of events) if (event.kind === 'state') rest.push(event)
    expect(rest).toEqual([
      {
        kind: 'state',
        at: expect.any(String),
        run: { state: 'ended', reason, dead_at: null },
        credentials: [],
      },
    ])
  })

  test('end with a last state when its agent is deleted', async () => {
    const eve = await app.newAgent({ scopes: ['orders'] })
    const run = await start(eve)
    await issue(run, eve)
    const { states } = follow(app, eve, run)
    await next(states)
    await app.local.delete(`/v1/admin/agents/${eve.name}`)
    const last = await next(states)
    expect([last.run, last.credentials]).toEqual([
      { state: 'ended', reason: 'agent_ended', dead_at: null },
      [],
    ])
    expect((await states.next()).done).toBe(true)
  })

  test('of one that has ended are its end', async () => {
    const run = await start()
    await ada.client.delete(`/v1/runs/${run}`)
    const { states } = follow(app, ada, run)
    expect(await next(states)).toMatchObject({ run: { state: 'ended', reason: 'completed' } })
    expect((await states.next()).done).toBe(true)
  })

  test('have what an administrator revokes, what a deleted backend held, and what expires', async () => {
    await app.newBackend({ name: 'gone' })
    const eve = await app.newAgent({ scopes: ['orders', 'gone'] })
    const run = await start(eve)
    const short = await issue(run, eve, '2m')
    const [kept, revoked] = [await issue(run, eve), await issue(run, eve)]
    const ofGone: string = (await eve.client.post('/v1/credentials/gone', { run })).body.id
    const { states, stop } = follow(app, eve, run)
    expect((await next(states)).credentials).toHaveLength(4)
    await app.local.delete(`/v1/admin/tokens/${revoked}`)
    await endedBy(states, revoked)
    await app.local.delete('/v1/admin/backends/gone?force=true')
    await endedBy(states, ofGone)
    app.advance(130_000)
    expect((await endedBy(states, short)).credentials).toEqual([kept])
    stop()
  })

  test('say at least in each heartbeat that the server can tell', async () => {
    const run = await start(ada, { heartbeat: '1s' })
    const { events, stop } = follow(app, ada, run)
    let last = await next(events)
    expect(last.kind).toBe('state')
    const gaps: number[] = []
    for (let n = 0; n < 5; n += 1) {
      const begun = performance.now()
      const one = await next(events)
      gaps.push(performance.now() - begun)
      expect(one.kind).toBe('alive')
      expect(Date.parse(one.at)).toBeGreaterThanOrEqual(Date.parse(last.at))
      last = one
    }
    // Twice in each; the median, as a pause of the machine makes one or two longer. Without a heartbeat each is 2.5 s.
    expect(gaps.sort((a, b) => a - b)[2]).toBeLessThan(1_000)
    stop()
  })

  test('are silent while the store cannot be read', async () => {
    const run = await start(ada, { heartbeat: '1s' })
    const { events, stop } = follow(app, ada, run)
    await next(events)
    const { credentials } = app.core.store as {
      credentials: Partial<TestApp['core']['store']['credentials']>
    }
    const { endedAmong, livingOfRuns } = credentials
    let heard = 0
    const reading = (async () => {
      for await (const _ of events) heard += 1
    })().catch(() => undefined)
    let tries = 0
    const fail = () => {
      tries += 1
      return Promise.reject(new Error('the disk is gone'))
    }
    Object.assign(credentials, { endedAmong: fail, livingOfRuns: fail })
    try {
      // Makes a node that is alone look, too.
      await issue(run)
      await expect.poll(() => tries, { timeout: 20_000 }).toBeGreaterThan(2)
      const before = heard
      // Well over two intervals of a stream that lives.
      await expect.poll(() => tries, { timeout: 20_000 }).toBeGreaterThan(9)
      expect(heard).toBe(before)
    } finally {
      Object.assign(credentials, { endedAmong, livingOfRuns })
    }
    const silent = heard
    await expect.poll(() => heard, { timeout: 20_000 }).toBeGreaterThan(silent)
    stop()
    await reading
  })

  test('have what was issued just before the clock was set forward', async () => {
    const run = await start()
    const { states, stop } = follow(app, ada, run)
    await next(states)
    await issue(run)
    await next(states)
    const late = await issue(run)
    app.advance(30_000)
    expect((await next(states)).credentials).toContain(late)
    stop()
  })

  test('have what is added to very many, however often they say that the server can tell', async () => {
    const run = await start(ada, { heartbeat: '1s' })
    for (let n = 0; n < 101; n += 1) await issue(run)
    const { states, stop } = follow(app, ada, run)
    expect((await next(states)).credentials).toHaveLength(101)
    const added = await issue(run)
    expect((await next(states)).credentials).toContain(added)
    stop()
  })

  test('of another agent, of an unknown run and with the token of another run are not found', async () => {
    const [one, other] = [await start(), await start()]
    const form = new URLSearchParams({ grant_type: 'client_credentials', run: other, ...ada.oidc })
    const login = await fetch(`${app.url}/oauth/token`, { method: 'POST', body: form })
    const token = ((await login.json()) as { access_token: string }).access_token
    for (const [agent, run, by] of [
      [bob, one, bob.token],
      [ada, UNKNOWN, ada.token],
      [ada, one, token],
    ] as const) {
      const { events } = follow(app, agent, run, by)
      await expect(events.next()).rejects.toMatchObject({ code: 'not_found' })
    }
    const { states, stop } = follow(app, ada, other, token)
    expect((await next(states)).run.state).toBe('running')
    stop()
  })

  test('end with the token that opened them, and begin again with another', async () => {
    const run = await start()
    const token = await app.accessToken(ada)
    const { states } = follow(app, ada, run, token)
    await next(states)
    const form = new URLSearchParams({ token, ...ada.oidc })
    await fetch(`${app.url}/oauth/revoke`, { method: 'POST', body: form })
    const ended: unknown = await states.next().catch((error: unknown) => error)
    expect(ended).toBeInstanceOf(MayflyError)
    const again = follow(app, ada, run)
    expect((await next(again.states)).run.state).toBe('running')
    again.stop()
  })

  test('of one run are followed by eight, and a place is free when one leaves', async () => {
    const run = await start()
    const streams = Array.from({ length: 8 }, () => follow(app, ada, run))
    for (const { states } of streams) await next(states)
    const ninth = follow(app, ada, run)
    await expect(ninth.events.next()).rejects.toMatchObject({ code: 'rate_limited' })
    expect(await next(follow(app, ada, await start()).states)).toMatchObject({ run: { state: 'running' } })
    streams[0]?.stop()
    await expect
      .poll(() =>
        follow(app, ada, run)
          .events.next()
          .then(
            ({ done }) => done,
            () => 'refused',
          ),
      )
      .toBe(false)
    for (const { stop } of streams) stop()
  })
})
