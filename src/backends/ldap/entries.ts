import { randomBytes } from 'node:crypto'
import type { Client } from 'ldapts'
import { encodeTail, encodeTime } from '../../domain/ids.ts'
import { BackendError } from '../kind.ts'
import {
  type Connection,
  codeOf,
  ENTRY_EXISTS,
  NO_SUCH_ATTRIBUTE,
  NO_SUCH_OBJECT,
  setPassword,
  toBackendError,
  VALUE_EXISTS,
} from './client.ts'
import type { Config } from './config.ts'

export interface NewEntry {
  readonly username: string
  readonly password: string
  readonly groups: readonly string[]
  readonly description: string
}

/** The name needs no escaping in a DN (RFC 4514 §2.4); the base is written as it was configured. */
export const dnOf = ({ base }: Pick<Config, 'base'>, username: string): string => `uid=${username},${base}`

/** `settled`: when no request is under way any more, which may be later than the end of `done` after an abort. */
export function addEntry(
  connection: Connection,
  settings: Config,
  entry: NewEntry,
  signal: AbortSignal,
): { readonly done: Promise<void>; readonly settled: Promise<unknown> } {
  let work: Promise<unknown> = Promise.resolve()
  const done = connection.use(signal, (client) => {
    const adding = add(client, settings, entry, signal)
    work = adding
    return adding
  })
  return { done, settled: done.catch(() => undefined).then(() => work.catch(() => undefined)) }
}

/** Nobody can log in before the last request, which sets the password. */
async function add(client: Client, settings: Config, entry: NewEntry, signal: AbortSignal): Promise<void> {
  const { username, password, groups, description } = entry
  const dn = dnOf(settings, username)
  // RFC 2798: `cn` and `sn` are required, as of every person.
  const names = { uid: username, cn: username, sn: username, description }
  try {
    await client.add(dn, { objectClass: ['top', 'inetOrgPerson'], ...names })
  } catch (error) {
    if (codeOf(error) !== ENTRY_EXISTS) throw error
    throw new BackendError('unavailable', 'There is an entry of this name already.', { cause: error })
  }
  const joined: string[] = []
  try {
    for (const group of groups) {
      signal.throwIfAborted()
      await changeMember(client, settings, { group, username, operation: 'add' })
      joined.push(group)
    }
    signal.throwIfAborted()
    await setPassword(client, dn, password)
  } catch (error) {
    // After an answer the entry can be taken back; without one, revocation does that.
    const undone =
      codeOf(error) !== undefined &&
      (await remove(client, settings, { username, groups: joined }).then(yes, no))
    const known = toBackendError(error, signal)
    if (undone) throw known
    throw new BackendError('unavailable', known.message, { cause: error, detail: known.detail ?? '' })
  }
}

const yes = () => true
const no = () => false

type Member = Pick<NewEntry, 'username' | 'groups'>

/** Idempotent. Without `groups`, from all groups of the configuration. */
export function removeEntry(
  connection: Connection,
  settings: Config,
  member: Partial<Member> & Pick<Member, 'username'>,
  signal: AbortSignal,
): Promise<void> {
  const groups = member.groups ?? settings.groups
  return connection.use(signal, (client) => remove(client, settings, { ...member, groups }))
}

/** The entry first: without it nobody can log in any more. */
async function remove(client: Client, settings: Config, { username, groups }: Member): Promise<void> {
  await client.del(dnOf(settings, username)).catch(unless(NO_SUCH_OBJECT))
  for (const group of groups) await changeMember(client, settings, { group, username, operation: 'delete' })
}

interface MemberChange {
  readonly group: string
  readonly username: string
  readonly operation: 'add' | 'delete'
}

async function changeMember(
  client: Client,
  settings: Config,
  { group, username, operation }: MemberChange,
): Promise<void> {
  const { Attribute, Change } = await import('ldapts')
  const type = settings.group_attribute
  // RFC 2307 §5.3: `memberUid` names the account, the others its DN.
  const values = [type === 'memberUid' ? username : dnOf(settings, username)]
  const change = new Change({ operation, modification: new Attribute({ type, values }) })
  // A group that is gone has no members; the server may have removed the member with its entry.
  const fine = operation === 'add' ? [VALUE_EXISTS] : [NO_SUCH_ATTRIBUTE, NO_SUCH_OBJECT]
  await client.modify(group, change).catch(unless(...fine))
}

const unless =
  (...codes: readonly number[]) =>
  (error: unknown): void => {
    const code = codeOf(error)
    if (code === undefined || !codes.includes(code)) throw error
  }

const PAGE = 500

/** The names of all entries under the base that begin as ours do, in pages (RFC 2696). */
export function listEntries(
  connection: Connection,
  { base }: Config,
  signal: AbortSignal,
): Promise<string[]> {
  return connection.use(signal, async (client, reset) => {
    const search = { filter: '(uid=mf_*)', attributes: ['uid'], paged: { pageSize: PAGE } }
    const names: string[] = []
    for await (const { searchEntries } of client.searchPaginated(base, { scope: 'one', ...search })) {
      signal.throwIfAborted()
      reset()
      names.push(...searchEntries.flatMap(({ uid }) => (typeof uid === 'string' ? [uid] : [])))
    }
    return names
  })
}

/**
 * Adds an entry to all groups and removes it: no request of LDAP tells what another one may do. The entry never has a known
 * password. Throws with what the server refused.
 */
export async function preflight(
  connection: Connection,
  settings: Config,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const username = `mf_${encodeTime(Date.now())}${encodeTail(0, randomBytes(13))}`
  const password = randomBytes(24).toString('base64url')
  const { groups } = settings
  const trial = { username, password, groups, description: 'Mayfly tries what it may do' }
  await connection.use(signal, (client) => requireGroups(client, settings))
  await addEntry(connection, settings, trial, signal).done
  try {
    await removeEntry(connection, settings, { username, groups }, signal)
  } catch (error) {
    const { fault, detail = '' } = toBackendError(error, signal)
    const message = `Mayfly may create entries and members but not remove them; remove ${dnOf(settings, username)}.`
    throw new BackendError(fault, message, { cause: error, detail })
  }
  return settings.tls === 'disable' && !settings.local
    ? ['Passwords travel to the LDAP server without encryption.']
    : []
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
    if (entry === undefined) throw new BackendError('misconfigured', `There is no group ${group}.`)
    const classes = [entry['objectClass'] ?? []].flat().map((one) => String(one).toLowerCase())
    const members = [entry[attribute] ?? []].flat().map(String)
    const isStrict = classes.includes('groupofnames') || classes.includes('groupofuniquenames')
    if (isStrict && members.every((one) => one.toLowerCase().startsWith('uid=mf_'))) {
      throw new BackendError('misconfigured', `The group ${group} needs a permanent member, such as itself.`)
    }
  }
}
