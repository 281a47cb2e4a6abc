import type { OpenBackend } from '../../backends/open-backends.ts'
import { nameKey } from '../../domain/agent.ts'
import { parseDuration } from '../../domain/duration.ts'
import { Problem } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import { agentEnded } from '../authentication/authenticate.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { commit, whileUnchanged } from '../commit.ts'
import { type Core, UNKNOWN_BACKEND } from '../context.ts'
import { findRunning } from '../runs/find-run.ts'
import { findReplay } from './idempotency.ts'
import { issueAtUpstream } from './issue-at-upstream.ts'
import {
  type Attempt,
  type Granted,
  type IdempotencyClaim,
  type IssueCommand,
  type IssuedCredential,
  StalePlan,
} from './issue-attempt.ts'
import { issueLocally } from './issue-locally.ts'
import { takeRates } from './limits.ts'
import { planIssue, requireStillGranted } from './plan-issue.ts'
import { usesOf } from './uses.ts'

const UNREADABLE =
  'The stored configuration of this backend cannot be opened. An administrator must enter it again.'
const MISSING = 'The server lacks the kind of this backend. An administrator must add its plugin again.'

/** How often a request is decided before it is given up as a conflict. */
const TRIES = 3

/**
 * Issues one credential (ARCHITECTURE.md, the life of a credential). Throws `backend_not_found`,
 * `scope_not_allowed`, `ttl_exceeded`, `invalid_request`, `rate_limited`, `conflict`, the `backend_*` problems, `not_found`
 * and `gone` for a run that is unknown or has ended,
 * `audit_unavailable` and `unauthorized`.
 */
export async function issueCredential(
  core: Core,
  actor: Actor<AgentCaller>,
  command: IssueCommand,
): Promise<IssuedCredential> {
  const attempt: Attempt = {
    actor,
    // What is issued with the token of a run belongs to the run.
    command: { ...command, run: command.run ?? actor.caller.run?.id },
    backend: undefined,
    plan: undefined,
    isRecorded: false,
  }
  return accounted(core, attempt, () => issueWhileCurrent(core, attempt))
}

type Accounted = Pick<Attempt, 'command' | 'backend' | 'plan' | 'isRecorded'> & { readonly actor: Actor }

/** Counts the attempt, and records it if it issues nothing. */
export async function accounted(
  core: Pick<Core, 'denials' | 'meter'>,
  attempt: Accounted,
  issue: () => Promise<IssuedCredential>,
): Promise<IssuedCredential> {
  const started = performance.now()
  try {
    const issued = await issue()
    core.meter.issued(issued.backend, 'ok', performance.now() - started)
    return issued
  } catch (error) {
    recordRefusal(core, attempt, error, performance.now() - started)
    throw error
  }
}

/** Decides again, a few times, when the agent or the backend changed before the commit. */
async function issueWhileCurrent(core: Core, attempt: Attempt): Promise<IssuedCredential> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await issueOnce(core, attempt)
    } catch (error) {
      if (!(error instanceof StalePlan)) throw error
      if (tries === TRIES)
        throw new Problem('conflict', { message: 'The agent or the backend is being changed; try again.' })
      attempt.actor = await readAgain(core, attempt.actor)
    }
  }
}

async function issueOnce(core: Core, attempt: Attempt): Promise<IssuedCredential> {
  const { command } = attempt
  const { caller } = attempt.actor
  const set = core.backends.at(caller.generation)
  const { byName } = set instanceof Promise ? await set : set
  const backend = byName.get(nameKey(command.backend))
  attempt.backend = backend
  attempt.plan = undefined
  if (backend === undefined) throw new Problem('backend_not_found')
  const found = command.run === undefined ? undefined : findRunning(core, caller, command.run)
  const run = found instanceof Promise ? await found : found
  const known =
    command.idempotencyKey === undefined ? undefined : await findReplay(core, attempt.actor, backend, command)
  if (known?.reply !== undefined)
    return withUses(attempt, backend, await replay(core, attempt, known.reply, known.claim))
  const plan = planIssue(core, { caller, command, run }, backend, known?.claim)
  if (backend.config === undefined) {
    const message = core.backends.kinds.has(backend.type) ? UNREADABLE : MISSING
    throw new Problem('backend_unavailable', { message, retryAfterSeconds: 60 })
  }
  const granted = Object.assign(attempt, { backend, plan, holder: caller })
  if (command.uses !== true) return issueGranted(core, granted)
  // Made before anything exists: if that fails, nothing is left behind.
  const uses = usesOf(backend, plan.scopes)
  return { ...(await issueGranted(core, granted)), uses }
}

function withUses({ command }: Attempt, backend: OpenBackend, reply: IssuedCredential): IssuedCredential {
  return command.uses === true ? { ...reply, uses: usesOf(backend, reply.scopes) } : reply
}

/** Issues what was decided. Throws `StalePlan` when it must be decided again. */
export function issueGranted(core: Core, granted: Granted): Promise<IssuedCredential> {
  takeRates(core, granted)
  return granted.backend.kind.upstream ? issueAtUpstream(core, granted) : issueLocally(core, granted)
}

/**
 * Repeats a secret only to a caller who could be issued it now (a narrowed token could not), while the agent lives, and
 * with an entry of its own. From then on the first request cannot take the credential back. Without the secret this is
 * no more than reading the credential.
 */
async function replay(
  core: Pick<Core, 'store' | 'ids'>,
  attempt: Attempt,
  reply: IssuedCredential,
  { keyHash }: IdempotencyClaim,
): Promise<IssuedCredential> {
  const { actor, command, backend } = attempt
  const { caller } = actor
  if (backend !== undefined) requireStillGranted(caller, backend, reply.scopes)
  if (reply.secret === undefined) return reply
  requireNoOutliving(caller, reply)
  const entry = audit(core, actor, {
    action: 'credential.repeated',
    backend: reply.backend,
    credentialId: reply.id,
    runId: command.run,
    scopes: reply.scopes,
    ttlMs: reply.ttlMs,
    metadata: command.metadata,
  })
  const mark = core.store.idempotency.markRepeated(caller.agentId, keyHash, reply.id, core.store.now())
  const change = [...whileUnchanged(actor), mark, entry]
  const outcome = await commit(core, actor, change, { code: 'audit_unavailable' })
  if (!outcome.done) throw new StalePlan()
  return reply
}

/** A narrowed token gets nothing that outlives it (ADR 0021), so no repeated secret either. Throws `insufficient_scope`. */
function requireNoOutliving({ isNarrowed, accessToken }: AgentCaller, reply: IssuedCredential): void {
  if (!isNarrowed || accessToken === undefined || reply.expiresAt <= accessToken.expiresAt) return
  throw new Problem('insufficient_scope', {
    message: 'This credential outlives your token, which does not have all scopes of its agent.',
  })
}

/** The one end of an attempt that issued nothing: counted, and in the audit unless its failure is there already. */
function recordRefusal(
  core: Pick<Core, 'denials' | 'meter'>,
  attempt: Accounted,
  error: unknown,
  ms: number,
): void {
  const { actor, command, backend, plan } = attempt
  const outcome = error instanceof Problem && error.status < 500 ? 'denied' : 'failed'
  // Names that callers make up must not become new series.
  core.meter.issued(backend?.name ?? UNKNOWN_BACKEND, outcome, ms)
  // A store that cannot be written takes no entry either.
  if (!(error instanceof Problem) || attempt.isRecorded || error.code === 'audit_unavailable') return
  core.denials.record(actor, {
    action: 'credential.issue_failed',
    outcome,
    backend: backend?.name,
    scopes: plan?.scopes ?? command.scopes,
    runId: plan?.run?.id,
    ttlMs: plan?.ttlMs ?? (command.ttl === undefined ? undefined : parseDuration(command.ttl)),
    metadata: command.metadata,
    details: { code: error.code },
  })
}

async function readAgain(
  core: Pick<Core, 'store' | 'callers'>,
  { caller, origin }: Actor<AgentCaller>,
): Promise<Actor<AgentCaller>> {
  const refreshed = await core.callers.refresh(caller, await core.store.generation())
  if (refreshed === undefined) throw agentEnded()
  return { caller: refreshed, origin }
}
