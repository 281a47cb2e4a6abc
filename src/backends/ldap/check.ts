import { randomBytes } from 'node:crypto'
import type { Client } from 'ldapts'
import { BackendError, misconfigured } from '../../domain/backend-error.ts'
import type { Host } from '../kind.ts'
import { type Connection, NO_SUCH_ATTRIBUTE, NO_SUCH_OBJECT, toBackendError, unless } from './client.ts'
import type { Config } from './config.ts'
import { deleteEntry, dnOf } from './deletion.ts'
import { addEntry, memberChange, removeEntry } from './entries.ts'

/**
 * Tries everything that issuing needs. LDAP has no request that reports permissions, so it adds an entry, which is in no group and
 * has a password that nobody knows, and removes it. Throws with what the server refused.
 */
export async function preflight(
  connection: Connection,
  settings: Config,
  host: Pick<Host, 'now' | 'timeoutMs'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  await connection.use(signal, async (client) => {
    await requireGroups(client, settings)
    for (const group of settings.groups) await tryGroup(client, settings, group)
  })
  await removeTrials(connection, settings, host, signal)
  await tryEntry(connection, settings, host, signal)
  return settings.tls === 'disable' && !settings.local
    ? ['Passwords travel to the LDAP server without encryption.']
    : []
}

/** No name of a credential: their alphabet lacks i and l. */
const TRIAL = 'mf_trial'

async function tryEntry(
  connection: Connection,
  settings: Config,
  { now, timeoutMs }: Pick<Host, 'now' | 'timeoutMs'>,
  signal: AbortSignal,
): Promise<void> {
  // It tells its age to `removeTrials`.
  const username = `${TRIAL}${now()}x${randomBytes(8).toString('hex')}`
  const password = randomBytes(24).toString('base64url')
  const description = 'Mayfly tries what it may do'
  const remove = (until: AbortSignal) => removeEntry(connection, settings, { username, groups: [] }, until)
  const adding = addEntry(connection, settings, { username, password, groups: [], description }, signal)
  await adding.done.catch((error: unknown) => {
    // The caller has gone, or the answer is lost: what may be there is removed over a connection of its own.
    void adding.settled.then(() => remove(AbortSignal.timeout(timeoutMs))).catch(() => undefined)
    throw error
  })
  try {
    await remove(signal)
  } catch (error) {
    void remove(AbortSignal.timeout(timeoutMs)).catch(() => undefined)
    const { fault, detail = '' } = toBackendError(error, signal)
    const message = `Mayfly may create entries but not remove them; remove ${dnOf(settings, username)}.`
    throw new BackendError(fault, message, { cause: error, detail })
  }
}

/** Longer than a check takes. */
const TRIAL_MS = 60_000

/** Removes the entries of checks that were killed. */
export function removeTrials(
  connection: Connection,
  settings: Config,
  host: Pick<Host, 'now'>,
  signal: AbortSignal,
): Promise<void> {
  return connection.use(signal, async (client) => {
    const search = { scope: 'one' as const, filter: `(uid=${TRIAL}*)`, attributes: ['uid'] }
    const found = await client.search(settings.base, search)
    for (const { uid } of found.searchEntries) {
      const [, since] = /^mf_trial(\d+)x/.exec(String(uid)) ?? []
      if (since !== undefined && Number(since) < host.now() - TRIAL_MS)
        await deleteEntry(client, settings, String(uid))
    }
  })
}

/**
 * Adds a member and deletes one that is not there, which the server always refuses: a change is made as a whole or not at all
 * (RFC 4511 §4.6). What Mayfly may not do is refused first.
 */
async function tryGroup(client: Client, settings: Config, group: string): Promise<void> {
  const nobody = () => `mf_${randomBytes(13).toString('hex')}`
  const changes = [
    await memberChange(settings, nobody(), 'add'),
    await memberChange(settings, nobody(), 'delete'),
  ]
  await client.modify(group, changes).catch(unless(NO_SUCH_ATTRIBUTE))
}

/** A group of names needs a member at all times (RFC 4519 §3.5): the last credential could not leave it. */
async function requireGroups(client: Client, settings: Config): Promise<void> {
  const { groups, group_attribute: attribute } = settings
  for (const group of groups) {
    const filter = '(objectClass=*)'
    const found = await client
      .search(group, { scope: 'base', filter, attributes: ['objectClass', attribute], sizeLimit: 1 })
      .catch(unless(NO_SUCH_OBJECT))
    const [entry] = found?.searchEntries ?? []
    if (entry === undefined) throw misconfigured(`There is no group ${group}.`)
    const classes = [entry['objectClass'] ?? []].flat().map((one) => String(one).toLowerCase())
    const members = [entry[attribute] ?? []].flat().map(String)
    const isStrict = classes.includes('groupofnames') || classes.includes('groupofuniquenames')
    if (isStrict && members.every((one) => one.toLowerCase().startsWith('uid=mf_'))) {
      throw misconfigured(`The group ${group} needs a permanent member, such as itself.`)
    }
  }
}
