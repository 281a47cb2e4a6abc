import type { AuditEntry } from '../../../../src/client/wire.ts'

export const FILTERS = ['agent', 'actor', 'backend', 'action', 'credential', 'run', 'since', 'until'] as const
export type Filters = Readonly<Record<(typeof FILTERS)[number], string | undefined>>

/** The filters that are set. */
export function queryOf(filters: Filters): Record<string, string> {
  return Object.fromEntries(
    FILTERS.flatMap((name) => (filters[name] === undefined ? [] : [[name, filters[name]]])),
  )
}

/** For a shell; the command shows the newest last. */
export function commandOf(filters: Filters, isFollowing = false): string {
  const flags = Object.entries(queryOf(filters)).map(([name, value]) => `--${name} ${quote(value)}`)
  return ['mayfly audit', ...flags, ...(isFollowing ? ['--follow'] : [])].join(' ')
}

const quote = (text: string): string =>
  /^[\w.:@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** Names are compared as the server compares them. */
const same = (one: string | null, other: string): boolean =>
  one !== null && one.toLowerCase() === other.toLowerCase()

/** Of a person of single sign-on: issuer and subject, in which case counts. */
const isOfSso = (actor: string): boolean => /^operator:https?:\/\//i.test(actor)

/**
 * Whether an entry that has just been written belongs to the list. `actorId`: the id of the agent that the filter `actor` names, as
 * entries have ids.
 */
export function matches(
  entry: AuditEntry,
  { agent, actor, backend, action, credential, run }: Filters,
  actorId?: string,
): boolean {
  const isAbout = agent === undefined || entry.agent_id === agent || same(entry.agent_name, agent)
  const isBy =
    actor === undefined ||
    (isOfSso(actor) ? entry.actor === actor : same(entry.actor, actor)) ||
    entry.actor === actorId
  return (
    isAbout &&
    isBy &&
    (backend === undefined || same(entry.backend, backend)) &&
    (action === undefined || entry.action === action) &&
    (credential === undefined || entry.credential_id === credential) &&
    (run === undefined || entry.run === run)
  )
}

/** An agent, by its name: its id has to be asked for. */
export const isAgentName = (actor: string | undefined): actor is string =>
  actor !== undefined &&
  !actor.startsWith('operator:') &&
  !actor.startsWith('ag_') &&
  !['local', 'system'].includes(actor.toLowerCase())

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * The next id in the order of the audit: the first entry before this place is the one with `id`. Undefined if that is no id of an
 * entry.
 */
export function placeAfter(id: string): string | undefined {
  if (!/^aud_[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(id)) return undefined
  const body = id.slice('aud_'.length)
  const rest = body.replace(/z+$/, '')
  const next = ALPHABET[ALPHABET.indexOf(rest.at(-1) ?? '') + 1]
  const raised = `${rest.slice(0, -1)}${next}`.padEnd(body.length, '0')
  return /^[0-7]/.test(raised) ? raised : undefined
}

/** Most entries that are kept while one follows: those that are older are asked for again. */
export const MOST_FOLLOWED = 1_000

/** Newest first, each once: around a new connection an entry may come twice, and two nodes may cross. */
export function mergeEntries<T extends { readonly id: string }>(
  news: readonly T[],
  before: readonly T[],
): readonly T[] {
  const known = new Map<string, T>()
  for (const entry of [...before, ...news]) known.set(entry.id, entry)
  return [...known.values()].sort((one, other) => (one.id < other.id ? 1 : -1))
}
