import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expireSessions } from '../../src/core/sessions/end-session.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import { eventually, type Reply, startApp, type TestApp } from '../support/app.ts'
import {
  allow,
  beginDevice,
  type Command,
  commandByBrowser,
  commandByCode,
  pollDevice,
} from '../support/command.ts'
import { callAsPage, logInAgain, newPerson, type Person } from '../support/person.ts'

let app: TestApp
let alice: Person
let agents = 0
beforeAll(async () => {
  app = await startApp()
  alice = await newPerson(app)
})
afterAll(() => app.close())

const ME = '/v1/admin/me'
const newest = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0]
const ownSession = async (person: Person) => (await person.call('GET', ME)).body.session.id as string
const endsOf = async (...ids: string[]) =>
  (await app.local.get('/v1/admin/audit?action=session.ended&limit=100')).body
    .filter(({ details }: { details: { session_id: string } }) => ids.includes(details.session_id))
    .map(({ details }: { details: { session_id: string; reason: string } }) => [
      details.session_id,
      details.reason,
    ])
const isAlive = async ({ client }: Command) => (await client.get(ME)).status === 200
const _agentNamed = async (scopes: string[] = []) => {
  agents += 1
  return (await app.newAgent({ name: `of-commands-${agents}`, scopes })).name
}
/** Ten logins begin in a minute at one address. */
const later = () => app.advance(MINUTE_MS / 10)
async function command(person: Person): Promise<Command> {
  later()
  return commandByCode(app, person)
}

describe('what ends a command', () => {
  test('the logout of the session that allowed it, at once', async () => {
    const bob = await newPerson(app)
    const own = await ownSession(bob)
    const [one, two] = [await command(bob), await commandByBrowser(app, bob)]
    await bob.call('POST', '/v1/console/logout')
    expect([await isAlive(one), await isAlive(two)]).toEqual([false, false])
    const ends = await endsOf(own, one.id, two.id)
    expect(ends.sort()).toEqual(
      [
        [own, 'logout'],
        [one.id, 'allowed_by_ended'],
        [two.id, 'allowed_by_ended'],
      ].sort(),
    )
  })

  test('somebody who ends that session, or all of the operator', async () => {
    const bob = await newPerson(app)
    const one = await command(bob)
    expect((await alice.call('DELETE', `/v1/admin/sessions/${await ownSession(bob)}`)).status).toBe(204)
    expect(await isAlive(one)).toBe(false)
    const again = await logInAgain(app, bob)
    const two = await command(again)
    const ended = await alice.call('DELETE', `/v1/admin/operators/${bob.id}/sessions`)
    expect([ended.status, ended.body.ended]).toEqual([200, 2])
    expect(await isAlive(two)).toBe(false)
    expect(await endsOf(two.id)).toEqual([[two.id, 'ended']])
  })

  test('the passkey that started that session, also after it', async () => {
    const bob = await newPerson(app)
    const inside = await logInAgain(app, bob)
    const [own, one] = [await ownSession(inside), await command(inside)]
    app.advance(30 * MINUTE_MS)
    while (await expireSessions(app.core)) {}
    expect(await isAlive(one)).toBe(true)
    const fresh = await logInAgain(app, bob)
    const two = await command(fresh)
    const [passkey] = (await fresh.call('GET', `/v1/admin/operators/${bob.id}/passkeys`)).body
    expect((await fresh.act('DELETE', `/v1/admin/operators/${bob.id}/passkeys/${passkey.id}`)).status).toBe(
      204,
    )
    expect([await isAlive(one), await isAlive(two)]).toEqual([false, false])
    expect(await endsOf(own, one.id, two.id)).toContainEqual([one.id, 'passkey_removed'])
    expect(await endsOf(two.id)).toEqual([[two.id, 'passkey_removed']])
  })

  test('the removal of the operator', async () => {
    const bob = await newPerson(app)
    const one = await command(bob)
    expect((await app.local.delete(`/v1/admin/operators/${bob.id}`)).status).toBe(204)
    expect(await isAlive(one)).toBe(false)
    expect(await endsOf(one.id)).toEqual([[one.id, 'operator_deleted']])
  })

  test('its own logout, and nothing else with it', async () => {
    const bob = await newPerson(app)
    const one = await command(bob)
    const two = await command(bob)
    expect((await one.client.delete(`/v1/admin/sessions/${one.id}`)).status).toBe(204)
    expect([await isAlive(one), await isAlive(two)]).toEqual([false, true])
    expect((await bob.call('GET', ME)).status).toBe(200)
  })

  test('a command ends the session that allowed it, and itself, in one change', async () => {
    const bob = await newPerson(app)
    const one = await command(bob)
    expect((await one.client.delete(`/v1/admin/sessions/${await ownSession(bob)}`)).status).toBe(204)
    expect(await isAlive(one)).toBe(false)
    expect((await bob.call('GET', ME)).status).toBe(401)
    const again = await logInAgain(app, bob)
    const two = await command(again)
    const ended = await two.client.delete(`/v1/admin/operators/${bob.id}/sessions`)
    expect([ended.status, await isAlive(two)]).toEqual([200, false])
  })

  test('not idleness, neither its own nor that of the session that allowed it; the end of that at the latest', async () => {
    const bob = await newPerson(app)
    const one = await command(bob)
    const { expires_at } = (await one.client.get(ME)).body.session
    expect(expires_at).toBe((await bob.call('GET', ME)).body.session.expires_at)
    app.advance(3 * HOUR_MS)
    while (await expireSessions(app.core)) {}
    expect((await bob.call('GET', ME)).status).toBe(401)
    expect(await isAlive(one)).toBe(true)
    app.advancePast(expires_at)
    expect(await isAlive(one)).toBe(false)
    while (await expireSessions(app.core)) {}
    expect(await endsOf(one.id)).toEqual([[one.id, 'expired']])
  })

  test('twenty sessions of an operator: the oldest goes with its commands, never the one that allows', async () => {
    const bob = await newPerson(app)
    const oldest = await command(bob)
    const inside = await logInAgain(app, bob)
    const all: Command[] = []
    for (let n = 0; n < 18; n += 1) all.push(await commandByBrowser(app, inside))
    const listed = async () => (await app.local.get(`/v1/admin/sessions?operator=${bob.id}`)).body.length
    expect(await isAlive(oldest)).toBe(false)
    expect((await bob.call('GET', ME)).status).toBe(401)
    all.push(await commandByBrowser(app, inside))
    expect(await listed()).toBe(20)
    all.push(await commandByBrowser(app, inside))
    expect(await listed()).toBe(20)
    expect((await inside.call('GET', ME)).status).toBe(200)
    expect(await isAlive(all[0] as Command)).toBe(false)
    expect(await isAlive(all.at(-1) as Command)).toBe(true)
  })

  test('a stream of events ends with it', async () => {
    const bob = await newPerson(app)
    const one = await command(bob)
    const stream = await fetch(`${app.url}/v1/admin/events`, {
      headers: { authorization: `Bearer ${one.token}` },
    })
    expect(stream.status).toBe(200)
    await bob.call('POST', '/v1/console/logout')
    const reader = stream.body?.getReader()
    for (;;) if ((await reader?.read())?.done !== false) break
  })
})

describe('a holder who does not want it to end', () => {
  test.each<[string, (bob: Person) => Promise<unknown>]>([
    ['logs out', (bob) => bob.call('POST', '/v1/console/logout')],
    ['is ended', async (bob) => app.local.delete(`/v1/admin/operators/${bob.id}/sessions`)],
    ['is removed', (bob) => app.local.delete(`/v1/admin/operators/${bob.id}`)],
  ])(
    'calls and polls while the operator %s: afterwards nothing of theirs is done, and no code gives a token',
    async (_, end) => {
      const bob = await newPerson(app)
      const one = await command(bob)
      later()
      const waiting = (await beginDevice(app)).body
      await allow(bob, { user_code: waiting.user_code })
      let isOver = false
      const late: number[] = []
      const hold = async (ask: () => Promise<Reply>) => {
        while (!isOver) await ask()
        for (let n = 0; n < 3; n += 1) late.push((await ask()).status)
      }
      let made = 0
      const create = () => {
        made += 1
        return one.client.post('/v1/admin/agents', { name: `held-${bob.id.slice(-6)}-${made}` })
      }
      const held = Promise.all([hold(create), hold(() => one.client.get(ME)), hold(create)])
      await eventually(async () => expect(made).toBeGreaterThan(3))
      await end(bob)
      isOver = true
      await held
      expect(new Set(late)).toEqual(new Set([401]))
      expect((await pollDevice(app, waiting.device_code)).body.error).toBe('access_denied')
      expect(
        (await app.local.get(`/v1/admin/sessions`)).body.map((s: { operator_id: string }) => s.operator_id),
      ).not.toContain(bob.id)
    },
  )

  test('comes for its token in the moment in which the session that allowed it ends: it is there and ends, or gets none', async () => {
    for (let n = 0; n < 5; n += 1) {
      const bob = await newPerson(app)
      later()
      const begun = (await beginDevice(app)).body
      await allow(bob, { user_code: begun.user_code })
      const [got] = await Promise.all([
        pollDevice(app, begun.device_code),
        bob.call('POST', '/v1/console/logout'),
      ])
      if (got.status === 200) expect((await app.as(got.body.access_token).get(ME)).status).toBe(401)
      else expect(got.body.error).toBe('access_denied')
    }
  })

  test('rights that are taken are gone with the next request', async () => {
    const bob = await newPerson(app)
    const one = await command(bob)
    expect((await one.client.get('/v1/admin/agents')).status).toBe(200)
    await app.local.patch(`/v1/admin/operators/${bob.id}`, { scopes: ['admin:audit:read'] })
    expect((await one.client.get('/v1/admin/agents')).status).toBe(403)
    expect((await one.client.get('/v1/admin/audit')).status).toBe(200)
  })
})

describe('a bearer', () => {
  beforeAll(async () => {
    alice = await newPerson(app)
  })

  test.each<[string, (token: string) => string]>([
    ['one letter more', (token) => `${token}0`],
    ['one less', (token) => token.slice(0, -1)],
    ['capitals', (token) => token.toUpperCase()],
    ['another prefix', (token) => token.replace('mop_', 'mfs_')],
    ['the prefix alone', () => 'mop_'],
    ['unknown', () => `mop_${'0'.repeat(64)}`],
    ['a device code', (token) => token.replace('mop_', 'mdc_')],
  ])('with %s is any bad token', async (_, change) => {
    const one = await command(alice)
    const bad = await app.as(change(one.token)).get(ME)
    const other = await app.as(`ckr_${'0'.repeat(48)}`).get(ME)
    expect([bad.status, bad.body.error.message]).toEqual([401, other.body.error.message])
    expect(bad.headers.get('www-authenticate')).toBe(other.headers.get('www-authenticate'))
    expect(await isAlive(one)).toBe(true)
  })

  test('that has ended is any bad token, also on the trusted host', async () => {
    const one = await command(alice)
    await one.client.delete(`/v1/admin/sessions/${one.id}`)
    const ended = await one.client.get('/v1/admin/agents')
    const other = await app.as(`ckr_${'0'.repeat(48)}`).get('/v1/admin/agents')
    expect([ended.status, ended.body.error.message]).toEqual([401, other.body.error.message])
    expect((await newest('auth.failed')).actor).toBe('system')
  })

  test('is no cookie and no key of a page, and these are no bearer', async () => {
    const one = await command(alice)
    const asCookie = await callAsPage(app, 'GET', ME, undefined, {
      cookie: `__Host-mayfly=${one.token}`,
      'mayfly-console': one.token,
    })
    expect(asCookie.status).toBe(401)
    expect((await app.as(alice.cookie.split('=')[1]).get(ME)).status).toBe(401)
    expect((await app.as(alice.key).get(ME)).status).toBe(401)
  })

  test('and other secrets of logins are never in the log', async () => {
    const begun = (await beginDevice(app)).body
    await allow(alice, { user_code: begun.user_code })
    const { access_token } = (await pollDevice(app, begun.device_code)).body
    app.core.log.info({ text: `${access_token} ${begun.device_code}` }, 'a line')
    expect(app.logged()).not.toContain(access_token)
    expect(app.logged()).not.toContain(begun.device_code)
  })

  test('whose body comes late is refused when its session has ended meanwhile', async () => {
    const one = await command(alice)
    const body = JSON.stringify({ name: 'too-late' })
    let send: (() => void) | undefined
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(body.slice(0, 5)))
        send = () => {
          controller.enqueue(new TextEncoder().encode(body.slice(5)))
          controller.close()
        }
      },
    })
    const reply = fetch(`${app.url}/v1/admin/agents`, {
      method: 'POST',
      headers: { authorization: `Bearer ${one.token}`, 'content-type': 'application/json' },
      body: stream,
      duplex: 'half',
    } as RequestInit)
    const last = (await app.core.store.sessions.find(one.id))?.lastUsedAt ?? 0
    expect(last).toBeGreaterThan(0)
    await one.client.delete(`/v1/admin/sessions/${one.id}`)
    send?.()
    expect((await reply).status).toBe(401)
    expect((await app.local.get('/v1/admin/agents/too-late')).status).toBe(404)
  })
})
