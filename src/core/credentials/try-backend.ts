import type { OpenBackend } from '../../backends/open-backends.ts'
import { DeadlineError } from '../../domain/abort.ts'
import { BackendError } from '../../domain/backend-error.ts'
import type { HealthReason } from '../../domain/backend-health.ts'
import type { Credential } from '../../domain/credential.ts'
import { formatDuration } from '../../domain/duration.ts'
import { Problem } from '../../domain/problems.ts'
import { hideValues } from '../../log/filter.ts'
import { audit } from '../audit/entry.ts'
import { isFullAdministrator } from '../backends/backend-power.ts'
import { asProblem, BreakerOpen } from '../backends/call-upstream.ts'
import { checkUpstream } from '../backends/check-backend.ts'
import { reasonOfCheck } from '../backends/health.ts'
import { readBackend } from '../backends/list-backends.ts'
import { type Actor, SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { LOCAL_HOLDER } from '../find-named.ts'
import { takeOrRefuse } from '../rates.ts'
import { requireWhole } from '../require-whole.ts'
import { exampleScopes } from './example-scopes.ts'
import { type Granted, type Holder, StalePlan } from './issue-attempt.ts'
import { accounted, issueGranted } from './issue-credential.ts'
import { planIssue, type Requester } from './plan-issue.ts'
import { endUnreceived, upstreamEnd } from './revoke-credential.ts'

export interface TriedStep {
  readonly name: 'check' | 'issue' | 'revoke'
  readonly ms: number
  readonly error?: HealthReason
  /** Words of the kind and of the upstream, for those who may read them. */
  readonly detail?: string
}

export interface Tried {
  readonly name: string
  readonly scopes: readonly string[]
  /** Up to the first that failed. */
  readonly steps: readonly TriedStep[]
  /** Undefined: it did not come to that. */
  readonly credential: Credential | undefined
  /** Whether nothing that works is left at the upstream. */
  readonly isEnded: boolean
  readonly warnings: readonly string[]
}

/** How long the credential lasts, in ms, where the kind and the limits let it. */
const TTL_MS = 60_000
/** Each try makes an account at the upstream. */
const RATE = { count: 10, perMs: 60_000 }
/** The shortest time that the reply waits for the end of the credential, in ms. */
const LEAST_WAIT_MS = 3_000

/**
 * Issues a credential that nobody receives, and ends it (ADR 0063). It is recorded as any other, as one of the caller, and ends as
 * any other if the server stops in between. Throws `backend_not_found`, `insufficient_scope`, `scope_not_allowed`, `ttl_exceeded`,
 * `invalid_request`, `rate_limited`, `conflict` and `audit_unavailable`. What the upstream says is in the steps.
 */
export async function tryBackend(
  core: Core,
  actor: Actor,
  name: string,
  asked: readonly string[] | undefined,
): Promise<Tried> {
  requireWhole(core, actor)
  const backend = await readBackend(core, actor.caller, name)
  const key = `try|${backend.uid}`
  const tried = await core.serialize.ifIdle(key, async () => {
    takeOrRefuse(core.rates, key, RATE, core.store.now(), 'This backend is tried too often.')
    return tryAlone({ core, actor, backend, steps: [], startedAt: performance.now() }, asked)
  })
  if (tried === undefined) throw new Problem('conflict', { message: 'This backend is being tried already.' })
  return tried
}

interface Run {
  readonly core: Core
  readonly actor: Actor
  readonly backend: OpenBackend
  readonly steps: TriedStep[]
  /** By `performance.now()`. */
  readonly startedAt: number
}

async function tryAlone(run: Run, asked: readonly string[] | undefined): Promise<Tried> {
  const { core, backend } = run
  // Without its configuration nothing can be decided; the check says so.
  const scopes = backend.config === undefined ? (asked ?? []) : (asked ?? exampleScopes(backend))
  const decide = () => decideTrial(run, scopes)
  if (backend.config !== undefined) decide()
  const checked = await step(run, 'check', async () => {
    const { warnings, error } = await checkUpstream(core, backend)
    if (error !== undefined) throw asProblem(error)
    return warnings
  })
  const id = checked === undefined ? undefined : await issueAndEnd(run, decide())
  const credential = id === undefined ? undefined : await core.store.credentials.find(id)
  const isEnded = credential === undefined || isGone(credential)
  await record(run, credential, isEnded)
  return { name: backend.name, scopes, steps: run.steps, credential, isEnded, warnings: checked ?? [] }
}

/** Decided again after the check: the lifetime begins then. */
function decideTrial({ core, actor, backend }: Run, scopes: readonly string[]): Granted {
  const { kind, maxTtlMs, name } = backend
  const holder = holderOf(actor)
  const longest = Math.min(TTL_MS, maxTtlMs, holder.bounds.maxTtlMs ?? TTL_MS)
  const command = {
    backend: name,
    scopes,
    ttl: formatDuration(Math.max(longest, kind.limits.minTtlMs ?? 0)),
  }
  // Nobody receives the credential, so nobody needs to hold its scopes.
  const requester: Requester = {
    scopes: [`${name}:*`],
    bounds: holder.bounds,
    agentExpiresAt: actor.caller.kind === 'agent' ? actor.caller.agentExpiresAt : null,
    isNarrowed: false,
    accessToken: undefined,
    timed: [],
  }
  const plan = planIssue(core, { caller: requester, command }, backend, undefined)
  return { actor, holder, command, backend, plan, isRecorded: false }
}

function holderOf({ caller }: Actor): Holder {
  switch (caller.kind) {
    case 'agent':
      return caller
    case 'operator':
      return {
        agentId: caller.operatorId,
        agentName: caller.email ?? caller.operatorId,
        policy: null,
        bounds: {},
      }
    case 'local':
      return { agentId: LOCAL_HOLDER, agentName: LOCAL_HOLDER, policy: null, bounds: {} }
  }
}

/** Returns the id of the credential, which the store may not know if the issue failed. */
async function issueAndEnd(run: Run, granted: Granted): Promise<string> {
  const { core, actor, backend } = run
  const { id } = granted.plan
  const issued = await step(run, 'issue', () =>
    accounted(core, granted, () => issueGranted(core, granted)).catch((error: unknown) => {
      if (!(error instanceof StalePlan)) throw error
      throw new Problem('conflict', { message: 'The backend, or your own agent, was changed; try again.' })
    }),
  )
  if (issued === undefined) return id
  const end = () => endIssued(run, id)
  if (backend.kind.revocation === 'exact') await step(run, 'revoke', end)
  else await endUnreceived(core, actor, id, { waitMs: LEAST_WAIT_MS, onFailure: () => undefined })
  return id
}

async function endIssued(run: Run, id: string): Promise<void> {
  const { core, actor, startedAt } = run
  const { upstreamTimeoutMs } = core.settings
  let failure: unknown
  // Together the steps take no longer than any request may (`longestRequest`).
  const left = 2 * upstreamTimeoutMs - (performance.now() - startedAt)
  const ended = await endUnreceived(core, actor, id, {
    waitMs: LEAST_WAIT_MS + Math.max(0, Math.min(left, upstreamTimeoutMs)),
    onFailure: (error) => {
      failure = error
    },
  })
  if (!isGone(ended)) throw asProblem(failure ?? new DeadlineError())
}

function isGone(credential: Credential): boolean {
  if (credential.state === 'failed') return true
  return credential.endedAt !== null && upstreamEnd(credential) === 'revoked'
}

/** One step. Undefined: it failed at the upstream. Throws what is not of the upstream's making. */
async function step<T>(run: Run, name: TriedStep['name'], work: () => Promise<T>): Promise<T | undefined> {
  const begunAt = performance.now()
  const ms = () => Math.round(performance.now() - begunAt)
  try {
    const result = await work()
    run.steps.push({ name, ms: ms() })
    return result
  } catch (error) {
    if (!isOfUpstream(error)) throw error
    const detail = detailFor(run.actor, error)
    run.steps.push({ name, ms: ms(), error: reasonOf(error), ...(detail === undefined ? {} : { detail }) })
    return undefined
  }
}

const UPSTREAM_CODES = new Set(['backend_error', 'backend_unavailable', 'backend_timeout'])

function isOfUpstream(error: unknown): error is Problem {
  if (!(error instanceof Problem)) return false
  return UPSTREAM_CODES.has(error.code) || error.cause instanceof BackendError
}

function reasonOf(problem: Problem): HealthReason {
  if (problem instanceof BreakerOpen) return 'unavailable'
  return problem.cause === undefined ? 'bad_answer' : reasonOfCheck(problem.cause)
}

/** As in the health of a backend. What blames the request is for everybody, as it is for agents. */
function detailFor(actor: Actor, { code, message, detail }: Problem): string | undefined {
  const shown = isFullAdministrator(actor) ? detail : code === 'invalid_request' ? message : undefined
  return shown === undefined ? undefined : hideValues(shown)
}

/** Also when the caller has ended by now: it was done. */
async function record(
  { core, actor, backend, steps }: Run,
  credential: Credential | undefined,
  isEnded: boolean,
): Promise<void> {
  const failed = steps.find(({ error }) => error !== undefined)
  const entry = audit(core, actor, {
    action: 'backend.tried',
    backend: backend.name,
    credentialId: credential?.id,
    details: { ended: isEnded, ...(failed && { failed: failed.name, reason: failed.error }) },
  })
  await commit(core, SYSTEM, [entry], { code: 'audit_unavailable' })
}
