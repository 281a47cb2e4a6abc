import type { Handle, Issued, Kind } from '../../src/backends/kind.ts'
import { ldap } from '../../src/backends/ldap/kind.ts'
import { createTestHost } from '../support/host.ts'
import { plantsEntries, staysLoggedIn } from '../support/ldap-holds.ts'
import { DELETE_REQUEST, type LdapProxy, startLdapProxy } from '../support/ldap-proxy.ts'
import { startLdapServer } from '../support/ldap-server.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('ldap', async (): Promise<OpenKind> => {
  const server = await startLdapServer()
  const { host, logged } = createTestHost('directory')
  let proxy: LdapProxy | undefined
  return {
    kind: ldap as unknown as Kind,
    backend: await ldap.open(server.settings, host),
    scopes: ['readers'],
    logged,
    tricks: {
      'stays logged in': (issued) => staysLoggedIn(server, issued),
      'plants entries below its own': (issued) => plantsEntries(server, issued),
    },
    async disarmed() {
      proxy = await startLdapProxy(server.url, (tag) => (tag === DELETE_REQUEST ? 'claim' : 'pass'))
      const { ca: _ca, ...plain } = server.settings
      return ldap.open({ ...plain, url: proxy.url, tls: 'disable' }, host)
    },
    unreachable: () => ldap.open({ ...server.settings, url: 'ldap://localhost:1' }, host),
    probe: {
      exists: async (handle: Handle) => {
        const left = await server.members('readers')
        const isMember = left.some((dn) => dn.startsWith(`uid=${handle['username']},`))
        return isMember || (await server.exists(handle['username']))
      },
      async use(issued: Issued) {
        const client = await server.login(issued.fields?.['dn'], issued.fields?.['password'])
        const found = await client.search('ou=secrets,dc=example,dc=com', { scope: 'base' })
        await client.unbind()
        return found.searchEntries.length === 1
      },
    },
    async close() {
      await proxy?.[Symbol.asyncDispose]()
      await server.stop()
    },
  }
})
