import type { Client } from 'ldapts'
import { unavailable } from '../../domain/backend-error.ts'
import {
  type Connection,
  codeOf,
  ENTRY_EXISTS,
  NO_SUCH_ATTRIBUTE,
  NO_SUCH_OBJECT,
  setPassword,
  toBackendError,
  unless,
  VALUE_EXISTS,
} from './client.ts'
import type { Config } from './config.ts'
import { deleteEntry, dnOf } from './deletion.ts'

export interface NewEntry {
  readonly username: string
  readonly password: string
  readonly groups: readonly string[]
  readonly description: string
}

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

/** RFC 2798: `cn` and `sn` are required, as of every person. */
const entryOf = (username: string, description: string) => ({
  objectClass: ['top', 'inetOrgPerson'],
  ...{ uid: username, cn: username, sn: username, description },
})

/** Nobody can log in before the last request, which sets the password. */
async function add(client: Client, settings: Config, entry: NewEntry, signal: AbortSignal): Promise<void> {
  const { username, password, groups, description } = entry
  const dn = dnOf(settings, username)
  try {
    await client.add(dn, entryOf(username, description))
  } catch (error) {
    if (codeOf(error) !== ENTRY_EXISTS) throw error
    throw unavailable('There is an entry of this name already.', { cause: error })
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
    throw unavailable(known.message, { cause: error, detail: known.detail ?? '' })
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
  await deleteEntry(client, settings, username)
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
  const change = await memberChange(settings, username, operation)
  // A group that is gone has no members; the server may have removed the member with its entry.
  const fine = operation === 'add' ? [VALUE_EXISTS] : [NO_SUCH_ATTRIBUTE, NO_SUCH_OBJECT]
  await client.modify(group, change).catch(unless(...fine))
}

export async function memberChange(settings: Config, username: string, operation: 'add' | 'delete') {
  const { Attribute, Change } = await import('ldapts')
  const type = settings.group_attribute
  // RFC 2307 §5.3: `memberUid` names the account, the others its DN.
  const values = [type === 'memberUid' ? username : dnOf(settings, username)]
  return new Change({ operation, modification: new Attribute({ type, values }) })
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
