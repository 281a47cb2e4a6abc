import { randomBytes } from 'node:crypto'
import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, unsupported } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { namedAccounts } from '../account-name.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Host } from '../kind.ts'
import { preflight, removeTrials } from './check.ts'
import { createConnection, setPassword } from './client.ts'
import { type Config, config, groupsOf, requireConsistent } from './config.ts'
import { dnOf } from './deletion.ts'
import { addEntry, listEntries, removeEntry } from './entries.ts'

const entries = namedAccounts('username', 'an entry')

/** An entry with a password in an LDAP directory (RFC 4511), a member of the groups that its scopes name. */
export const ldap = defineKind({
  type: 'ldap',
  serviceAccounts: ['openldap', 'ldap', 'dirsrv'],
  title: 'LDAP',
  config,
  revocation: 'exact',
  scopes: {
    valid: (scope) => isScope(scope) && !scope.includes(':'),
    gives: (settings, scope) => groupsOf(settings, scope).length > 0,
    forms: [
      { form: '<group>', gives: 'log in as a member of a group' },
      { form: '*', gives: 'log in as a member of all groups of the backend' },
    ],
    help: 'The name of a group of the backend (the value of the first part of its DN); with * at its end, all that begin so.',
  },
  validate: requireConsistent,
  open: openLdap,
})

async function openLdap(settings: Config, host: Host): Promise<Opened> {
  const connection = createConnection(settings, host)
  /** Issues whose requests may still be under way at the server, also after nobody waits for them. */
  const underWay = new Map<string, Promise<unknown>>()
  return {
    check: (signal) => preflight(connection, settings, host, signal),
    keepUp: (signal) => removeTrials(connection, settings, host, signal),
    async issue(request, signal) {
      const username = entries.nameOf(request.credentialId)
      const groups = grantedGroups(settings, request.scopes)
      const password = randomBytes(24).toString('base64url')
      const until = new Date(request.expiresAt).toISOString()
      const description = `Mayfly credential of ${request.agent.name}, until ${until}`
      const work = addEntry(connection, settings, { username, password, groups, description }, signal)
      underWay.set(username, work.settled)
      void work.settled.then(() => underWay.delete(username))
      await work.done
      const dn = dnOf(settings, username)
      const url = settings.connect_url ?? settings.url
      return {
        fields: { dn, username, password, url, base: settings.base },
        handle: { username, groups: groups.join('\n') },
        facts: { dn },
      }
    },
    async revoke(handle, signal) {
      const username = entries.nameIn(handle)
      // An entry that the server adds after we have deleted it would stay.
      const pending = underWay.get(username)
      if (pending !== undefined) await waitFor(pending, signal)
      const { groups } = handle
      const named = typeof groups === 'string' ? { groups: groups.split('\n').filter(Boolean) } : {}
      await removeEntry(connection, settings, { username, ...named }, signal)
    },
    recover: entries.recover,
    async list(_after, signal) {
      // slapd keeps one search in pages per connection (slapd.conf(5), `limits`), and its place ends with the connection.
      await using own = createConnection(settings, host)
      const names = await listEntries(own, settings, signal)
      return { items: names.flatMap((name) => entries.listed(name)) }
    },
    rotation: {
      propose: async () => ({ bind_password: randomBytes(24).toString('base64url') }),
      adopt: async (next, signal) => {
        const password = next['bind_password'] ?? ''
        await connection.use(signal, (client) => setPassword(client, undefined, password))
      },
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

async function waitFor(pending: Promise<unknown>, signal: AbortSignal): Promise<void> {
  try {
    signal.throwIfAborted()
    await unlessAborted(pending, signal)
  } catch (cause) {
    throw new BackendError('timeout', 'The LDAP server has not answered the issue of this credential.', {
      cause,
    })
  }
}

/** Throws `unsupported` where a scope names no group. An empty list grants none. */
function grantedGroups(settings: Config, scopes: readonly string[]): string[] {
  if (!scopes.every((scope) => isScope(scope) && groupsOf(settings, scope).length > 0))
    throw unsupported('One of the scopes covers no group of the backend.')
  return [...new Set(scopes.flatMap((scope) => groupsOf(settings, scope)))]
}
