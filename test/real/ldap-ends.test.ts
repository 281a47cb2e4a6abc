import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Config } from '../../src/backends/ldap/config.ts'
import { ldap } from '../../src/backends/ldap/kind.ts'
import { newRequest } from '../contract/open-kind.ts'
import { eventually } from '../support/app.ts'
import { createTestHost } from '../support/host.ts'
import { plantsEntries } from '../support/ldap-holds.ts'
import { startLdapProxy } from '../support/ldap-proxy.ts'
import { type LdapServer, startLdapServer } from '../support/ldap-server.ts'

const ROOT = 'dc=example,dc=com'
const signal = AbortSignal.timeout(600_000)
let server: LdapServer

const { host } = createTestHost('directory')
const open = (overrides: Partial<Config> = {}) => ldap.open({ ...server.settings, ...overrides }, host)
const request = (...scopes: string[]) => ({ ...newRequest(scopes), params: {} })
const ours = () =>
  server.admin(async (client) => {
    const found = await client.search(ROOT, { filter: '(uid=mf_*)', attributes: ['uid'] })
    return found.searchEntries.map(({ uid }) => uid)
  })

beforeAll(async () => {
  server = await startLdapServer()
})
afterAll(() => server?.stop())

describe('the kind ldap', () => {
  test('leaves nothing of its check, whichever answer of the server is lost', async () => {
    const [before, members] = [await ours(), await server.members('readers')]
    const groups = [`cn=readers,ou=groups,${ROOT}`]
    let requests = 0
    const { ca: _ca, ...plain } = server.settings
    for (let lost = 1, isDone = false; !isDone; lost += 1) {
      requests = 0
      await using proxy = await startLdapProxy(server.url, () => {
        requests += 1
        return requests === lost ? 'lose' : 'pass'
      })
      await using backend = await ldap.open({ ...plain, groups, tls: 'disable', url: proxy.url }, host)
      const checked = await backend.check(signal).catch((error: unknown) => error)
      isDone = requests < lost
      expect(Array.isArray(checked)).toBe(isDone)
      await eventually(async () => expect(await ours()).toEqual(before))
      expect(await server.members('readers')).toEqual(members)
    }
    expect(requests).toBeGreaterThan(5)
  })

  test('removes what a check that was killed has left, and nothing of one that is under way', async () => {
    await using backend = await open()
    const name = (ageMs: number) => `mf_trial${Date.now() - ageMs}x0011223344556677`
    for (const clean of [() => backend.check(signal), () => backend.keepUp?.(signal)]) {
      const [old, fresh] = [name(120_000), name(1_000)]
      await server.admin(async (client) => {
        for (const uid of [old, fresh])
          await client.add(`uid=${uid},${server.settings.base}`, {
            ...{ objectClass: 'inetOrgPerson', uid, cn: uid, sn: uid },
          })
      })
      await clean()
      expect([await server.exists(old), await server.exists(fresh)]).toEqual([false, true])
      await server.admin((client) => client.del(`uid=${fresh},${server.settings.base}`))
    }
  })

  test('deletes an entry below which its holder plants others without end', async () => {
    await using backend = await open()
    const issued = await backend.issue(request('readers'), signal)
    await using hold = await plantsEntries(server, issued)
    expect(await hold.works()).toBe(true)
    await backend.revoke?.(issued.handle ?? {}, signal)
    expect(await hold.works()).toBe(false)
    const below = await server.admin((client) => client.search(server.settings.base, { scope: 'children' }))
    const names = below.searchEntries.map(({ dn }) => dn)
    expect(names.filter((dn) => dn.includes(String(issued.fields?.['username'])))).toEqual([])
  })

  test('goes on with a deletion that a crash has interrupted', async () => {
    await using backend = await open()
    const issued = await backend.issue(request('readers'), signal)
    await using _hold = await plantsEntries(server, issued)
    const ended = `uid=${issued.fields?.['username']}ended`
    await server.admin((client) => client.modifyDN(String(issued.fields?.['dn']), ended))
    await backend.revoke?.(issued.handle ?? {}, signal)
    expect(await server.exists(`${issued.fields?.['username']}ended`)).toBe(false)
  })
})
