import type { AuditEntry } from '../../domain/audit-entry.ts'
import { formatDuration } from '../../domain/duration.ts'
import type { Enrollment } from '../../domain/enrollment.ts'
import { DAY_MS } from '../../domain/limits.ts'
import { MOST_NAMED, type Notice, type NoticeType, namesOf, shown } from '../../domain/notice.ts'
import { hideValues } from '../../log/filter.ts'
import type { Core } from '../context.ts'

/** A message and the entries that it is about. */
export interface NoticeOf {
  readonly notice: Notice
  readonly ids: readonly string[]
}

/** An entry that somebody should hear of. */
interface Told {
  readonly entry: AuditEntry
  readonly type: NoticeType
  /** The request that waits. */
  readonly request?: Enrollment
}

/** What to tell of these entries, which are in the order of their ids: one message for each type and backend. */
export async function noticesOf(
  core: Pick<Core, 'store'>,
  entries: readonly AuditEntry[],
): Promise<NoticeOf[]> {
  const groups = new Map<string, [Told, ...Told[]]>()
  for (const one of await toldOf(core, entries)) {
    const key = `${one.type} ${one.entry.backend ?? ''}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return [...groups.values()].map((group) => ({
    notice: noticeOf(group),
    ids: group.map(({ entry }) => entry.id),
  }))
}

/** Leaves out first failures, which are tried again soon, and requests that do not wait any more. */
async function toldOf(core: Pick<Core, 'store'>, entries: readonly AuditEntry[]): Promise<Told[]> {
  const all = await Promise.all(
    entries.map(async (entry): Promise<Told[]> => {
      const type = typeOf(entry)
      if (type === undefined) return []
      if (type !== 'request.waiting') return [{ entry, type }]
      const request = await requestOf(core, entry)
      const waits = request?.status === 'pending' && request.expiresAt > core.store.now()
      return waits ? [{ entry, type, request }] : []
    }),
  )
  return all.flat()
}

function typeOf({ action, details }: AuditEntry): NoticeType | undefined {
  switch (action) {
    case 'enrollment.requested':
      return 'request.waiting'
    case 'credential.revoke_failed':
      return details?.['stuck'] === true ? 'credential.stuck' : undefined
    case 'backend.down':
    case 'backend.up':
    case 'backend.root_aged':
    case 'certificate.expiring':
    case 'notification.dropped':
    case 'placeholder.misused':
      return action
    default:
      return undefined
  }
}

/** How many of these entries a receiver would have been told of, however old they are now. */
export async function countTold(core: Pick<Core, 'store'>, entries: readonly AuditEntry[]): Promise<number> {
  const told = await Promise.all(
    entries.map(async (entry) => {
      const type = typeOf(entry)
      if (type !== 'request.waiting') return type !== undefined && type !== 'notification.dropped'
      return (await requestOf(core, entry))?.decidedBy !== 'system'
    }),
  )
  return told.filter(Boolean).length
}

async function requestOf({ store }: Pick<Core, 'store'>, { details }: AuditEntry) {
  const id = details?.['enrollment_id']
  return typeof id === 'string' ? store.enrollments.find(id) : undefined
}

function noticeOf(group: readonly [Told, ...Told[]]): Notice {
  const last = group.at(-1) ?? group[0]
  return {
    // A receiver that knows it has seen all entries up to this one.
    id: `msg_${last.entry.id}`,
    type: last.type,
    at: last.entry.at,
    ...contentOf(last, group),
  }
}

type Content = Pick<Notice, 'title' | 'lines' | 'data'>

function contentOf(last: Told, group: readonly Told[]): Content {
  const { entry, type } = last
  const backend = entry.backend ?? ''
  const facts = entry.details ?? {}
  switch (type) {
    case 'request.waiting':
      return requests(group.flatMap(({ request }) => request ?? []))
    case 'credential.stuck':
      return stuck(
        backend,
        group.map((one) => one.entry),
      )
    case 'backend.down':
      return {
        title: `${backend} is down`,
        lines: [
          `Its upstream no longer works (${shown(String(facts['reason']))}). The log of the server says more; mayfly backend show ${backend}`,
        ],
        data: { backend, reason: shown(String(facts['reason'])) },
      }
    case 'backend.up':
      return { title: `${backend} works again`, lines: [], data: { backend } }
    case 'backend.root_aged':
      return rootAged(entry)
    case 'certificate.expiring':
      return {
        title: `The certificate of the server expires at ${shown(String(facts['expires_at']))}`,
        lines: ['Replace tls_cert_file and tls_key_file before that.'],
        data: { expires_at: facts['expires_at'], sha256: facts['sha256'] },
      }
    case 'notification.dropped':
      return {
        title: `The receiver ${shown(String(facts['receiver']))} took nothing for a day`,
        lines: [
          `${String(facts['count'])} older notifications are no longer sent to it. mayfly audit has them.`,
        ],
        data: { receiver: facts['receiver'], count: facts['count'] },
      }
    case 'placeholder.misused':
      return misused(
        backend,
        group.map((one) => one.entry),
      )
    case 'test':
      return { title: '', lines: [], data: {} }
    default: {
      const never: never = type
      return never
    }
  }
}

function requests(all: readonly Enrollment[]): Content {
  const [first] = all
  const what = ({ type, metadata }: Enrollment) => {
    if (type === 'enroll') return 'wants to become an agent'
    if (type === 'amendment') return 'wants more scopes'
    return `came in from the platform ${shown(String(metadata?.['platform']))} without rights`
  }
  const title =
    all.length === 1 && first !== undefined
      ? `${shown(first.name)} ${what(first)}`
      : `${all.length} requests wait for a decision`
  const named = all.slice(0, MOST_NAMED)
  const more = all.length - named.length
  return {
    title,
    lines: [
      ...named.map((one) => {
        const scopes = one.scopes.length > 0 ? `scopes: ${namesOf(one.scopes)}` : nothingNamed(one)
        const reason = one.reason === null ? '' : `; reason given: ${reasonOf(one.reason)}`
        return `${shown(one.name)} ${what(one)} (${scopes}${reason}). mayfly pending ${one.id}`
      }),
      ...(more > 0 ? [`and ${more} more. mayfly pending`] : []),
    ],
    data: {
      count: all.length,
      requests: named.map((one) => ({
        id: one.id,
        type: one.type,
        agent: shown(one.name),
        scopes: one.scopes.slice(0, MOST_NAMED).map(shown),
        ...(one.reason === null ? {} : { reason: reasonOf(one.reason) }),
        expires_at: new Date(one.expiresAt).toISOString(),
      })),
    },
  }
}

/** Who signs the tokens of a platform chooses the subject, and may put anything there. */
function nothingNamed({ type, metadata }: Enrollment): string {
  return type === 'claim' ? `subject: ${reasonOf(String(metadata?.['subject']))}` : 'no scopes named'
}

/** An agent may write anything there, its token, too. */
const reasonOf = (reason: string) => shown(hideValues(reason))

function stuck(backend: string, entries: readonly AuditEntry[]): Content {
  const count = entries.length
  const agents = entries.flatMap(({ agentName }) => agentName ?? [])
  const codes = [...new Set(entries.map(({ details }) => String(details?.['code'])))]
  return {
    title:
      count === 1
        ? `A credential of ${backend} cannot be ended`
        : `${count} credentials of ${backend} cannot be ended`,
    lines: [
      `Of ${namesOf(agents)}. The upstream failed six times (${codes.map(shown).join(', ')}) and may still accept them; Mayfly goes on trying.`,
    ],
    data: {
      backend,
      count,
      agents: [...new Set(agents)].slice(0, MOST_NAMED).map(shown),
      credentials: entries.flatMap(({ credentialId }) => credentialId ?? []).slice(0, MOST_NAMED),
      codes,
    },
  }
}

/** Where it was sent is what a proxy says, and so what an agent may have chosen. */
function misused(backend: string, entries: readonly AuditEntry[]): Content {
  const agents = [...new Set(entries.flatMap(({ agentName }) => agentName ?? []))]
  const hosts = [...new Set(entries.flatMap(({ details }) => details?.['authority'] ?? []).map(String))]
  const runs = [...new Set(entries.flatMap(({ runId }) => runId ?? []))]
  const to = hosts.length === 0 ? '' : `, to ${namesOf(hosts)}`
  return {
    title: `A placeholder of ${backend === '' ? 'a backend' : backend} was sent where it does not belong`,
    lines: [
      `By ${namesOf(agents)}${to}. The proxy refused it; find out why, as the agent may be misled. mayfly audit --action placeholder.misused`,
    ],
    data: {
      ...(backend !== '' && { backend }),
      count: entries.length,
      agents: agents.slice(0, MOST_NAMED).map(shown),
      authorities: hosts.slice(0, MOST_NAMED).map(shown),
      runs: runs.slice(0, MOST_NAMED),
    },
  }
}

function rootAged({ at, backend, details }: AuditEntry): Content {
  const setAt = Date.parse(String(details?.['set_at']))
  const days = Math.floor((at - setAt) / DAY_MS)
  const age = days >= 1 ? `${days} ${days === 1 ? 'day' : 'days'}` : formatDuration(Math.max(1, at - setAt))
  return {
    title: `The root secret of ${backend} is ${age} old`,
    lines: [
      `It should be replaced after ${String(details?.['rotate_root_after'])}. mayfly backend rotate-root ${backend}`,
    ],
    data: { backend, set_at: details?.['set_at'], rotate_root_after: details?.['rotate_root_after'] },
  }
}
