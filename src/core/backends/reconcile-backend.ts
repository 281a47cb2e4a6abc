import type { Listed, ListedPage } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import type { Credential } from '../../domain/credential.ts'
import { invalid, type Problem, type ProblemCode } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import { type Actor, type Caller, SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import type { Entry } from '../parts.ts'
import { requireWhole } from '../require-whole.ts'
import { requireWholeBackend } from './backend-power.ts'
import { asProblem, callEntered, describe, enterUpstream } from './call-upstream.ts'
import { readAnyBackend } from './list-backends.ts'

export interface ReconcileCommand {
  /** End what is found. */
  readonly revoke?: boolean | undefined
  /** Where an earlier reply has stopped. */
  readonly cursor?: string | undefined
}

/** An account upstream that carries our name and that no living credential owns. */
export interface Unowned {
  readonly credentialId: string
  /** Epoch ms, where the upstream says it. */
  readonly expiresAt: number | undefined
  readonly outcome: Outcome
}

/** `left`: only listed. `failed`: the upstream did not end it; another run tries it again. */
type Outcome = 'left' | 'revoked' | 'failed'

export interface Reconciled {
  readonly name: string
  /** Accounts with our names, owned or not. */
  readonly seen: number
  readonly unowned: readonly Unowned[]
  /** Undefined when the upstream has been listed to its end. */
  readonly nextCursor: string | undefined
}

/** Limits for one reply: time to list and time to revoke (ms), and roughly how many accounts it names. */
const LIST_MS = 5_000
const REVOKE_MS = 10_000
export const MOST = 1_000
/** Accounts that are ended at a time. */
const AT_ONCE = 4
/** Ids in one query. */
const SLICE = 500

type EndParts = Pick<Core, 'store' | 'backends' | 'settings' | 'ids' | 'log' | 'health'>

/** A page of the upstream's listing. */
interface Place {
  readonly after: string | undefined
  /** How many pages from here an earlier reply has counted. */
  readonly counted: number
}

export interface Found {
  readonly account: Listed
  /** The settled credential that left it behind; undefined if the store knows none. */
  readonly credential?: Credential
  outcome: Outcome | undefined
}

interface Placed extends Found {
  /** The number of its page, from 0. */
  readonly page: number
}

/**
 * Finds the accounts that carry our names and that no living credential of any backend owns: left behind by a restored store,
 * or owned by another installation of Mayfly. With `revoke` it ends them, which requires the whole scope
 * of the backend. Throws `insufficient_scope`, `backend_not_found`, `invalid_request` for a kind that cannot list, and the
 * `backend_*` problems.
 */
export async function reconcileBackend(
  core: Core,
  actor: Actor,
  name: string,
  { revoke = false, cursor }: ReconcileCommand,
): Promise<Reconciled> {
  if (revoke) requireWhole(core, actor)
  const backend = await readAnyBackend(core, actor.caller, name)
  if (revoke) requireWholeBackend(core, actor, backend.name)
  const first = cursor === undefined ? { after: undefined, counted: 0 } : openCursor(core, backend, cursor)
  const { places, rest, found, seen } = await listUnowned(core, backend, first)
  const details = { seen, unowned: found.length, revoke }
  await commit(core, actor, [
    audit(core, actor, { action: 'backend.reconciled', backend: backend.name, details }),
  ])
  if (revoke) await endAll(core, actor, backend, found)
  const unreached = found.find(({ outcome }) => outcome === undefined)
  // If nothing could be ended, starting at the same place again would never finish.
  const again = unreached !== undefined && found.some(({ outcome }) => outcome === 'revoked')
  const next = again
    ? {
        after: places[unreached.page]?.after,
        counted: places.length - unreached.page + (rest?.counted ?? 0),
      }
    : rest
  return {
    name: backend.name,
    seen,
    unowned: found
      .filter(({ outcome }) => !again || outcome !== undefined)
      .map(({ account: { credentialId, expiresAt }, outcome = 'left' }) => ({
        credentialId,
        expiresAt,
        outcome,
      })),
    nextCursor: next === undefined ? undefined : sealCursor(core, backend, next),
  }
}

async function listUnowned(core: Core, backend: OpenBackend, first: Place) {
  const until = core.store.now() + LIST_MS
  const places: Place[] = []
  const found: Placed[] = []
  let seen = 0
  let place: Place | undefined = first
  do {
    const here: Place = place
    const begunAt = core.store.now()
    const { items, next }: ListedPage = await listPage(core, backend, here.after)
    // Only now: an issue records its credential before it reaches the upstream.
    const owned = await ownedAt(core, items, begunAt)
    const page = places.push(here) - 1
    if (here.counted === 0) seen += items.length
    for (const account of items)
      if (!owned.has(account.credentialId)) found.push({ account, page, outcome: undefined })
    place = next === undefined ? undefined : { after: next, counted: Math.max(0, here.counted - 1) }
  } while (place !== undefined && found.length < MOST && core.store.now() < until)
  return { places, rest: place, found, seen }
}

/** Throws the `backend_*` problems, and `invalid_request` for a kind that cannot list. */
export async function listPage(core: EndParts, backend: OpenBackend, after: string | undefined) {
  const entered = enterUpstream(backend, 'revoking')
  try {
    return await callEntered(core, backend, entered, async (instance, signal) => {
      if (instance.list === undefined)
        throw invalid(
          'Backends of this kind cannot be reconciled: the upstream does not list what Mayfly creates.',
        )
      return instance.list(after, signal)
    })
  } catch (error) {
    throw asProblem(error)
  }
}

/** Those with a record that is not settled, of any backend: several may share an upstream. */
async function ownedAt(core: Core, items: readonly Listed[], begunAt: number): Promise<Set<string>> {
  const owned = new Set<string>()
  // Settled since the upstream was asked: it was owned then, and is gone by now.
  for (const { id, settledAt } of await recordsOf(core, items))
    if (settledAt === null || settledAt >= begunAt) owned.add(id)
  return owned
}

/** The credentials of these accounts that the store knows. */
export async function recordsOf(core: EndParts, items: readonly Listed[]): Promise<Credential[]> {
  const records: Credential[] = []
  for (let from = 0; from < items.length; from += SLICE) {
    const ids = items.slice(from, from + SLICE).map(({ credentialId }) => credentialId)
    records.push(...(await core.store.credentials.findAll(ids)))
  }
  return records
}

/** Stops at the first outage, whose problem it throws. What it does not reach in time has no outcome. */
export async function endAll(
  core: EndParts,
  actor: Actor<Caller | undefined>,
  backend: OpenBackend,
  found: readonly Found[],
): Promise<void> {
  const until = core.store.now() + REVOKE_MS
  const waiting = found.values()
  let outage: Problem | undefined
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const one of waiting) {
        if (outage !== undefined || core.store.now() > until) return
        try {
          one.outcome = await endOne(core, actor, backend, one)
        } catch (error) {
          outage = asProblem(error)
        }
      }
    }),
  )
  if (outage !== undefined) throw outage
}

/** The entry comes first: a crash may leave one for an account that another run ends, and never an end without one. */
async function endOne(
  core: EndParts,
  actor: Actor<Caller | undefined>,
  backend: OpenBackend,
  { account: { credentialId, handle }, credential }: Found,
): Promise<Outcome> {
  const agent = credential === undefined ? null : { id: credential.agentId, name: credential.agentName }
  const reason = credential === undefined ? 'no_record' : 'found_upstream'
  const record = (entry: Pick<Entry, 'action' | 'outcome'>, code?: ProblemCode) =>
    commit(
      core,
      SYSTEM,
      [
        audit(core, actor, {
          ...entry,
          agent,
          backend: backend.name,
          credentialId,
          details: { reason, ...(code && { code }) },
        }),
      ],
      { urgent: true },
    )
  const entered = enterUpstream(backend, 'revoking')
  try {
    await record({ action: 'credential.revoked' })
  } catch (error) {
    entered.pass.cancel()
    throw error
  }
  try {
    await callEntered(core, backend, entered, async (instance, signal) => instance.revoke?.(handle, signal))
    return 'revoked'
  } catch (error) {
    const problem = asProblem(error)
    await record({ action: 'credential.revoke_failed', outcome: 'failed' }, problem.code)
    if (problem.code !== 'backend_error' && problem.code !== 'invalid_request') throw problem
    core.log.warn(
      { backend: backend.name, credential: credentialId, detail: describe(error) },
      'the upstream did not end an account that no living credential owns',
    )
    return 'failed'
  }
}

/** Sealed, because a kind may put an address into it, which a caller must not choose. */
function sealCursor({ sealer }: Core, { uid }: OpenBackend, place: Place): string {
  return sealer.seal('backends', uid, 'cursor', JSON.stringify(place))
}

function openCursor({ sealer }: Core, { uid }: OpenBackend, cursor: string): Place {
  try {
    return JSON.parse(sealer.open('backends', uid, 'cursor', cursor)) as Place
  } catch {
    throw invalid('"cursor" is not one that this backend has returned.')
  }
}
