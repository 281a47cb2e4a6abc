import type { Issued } from '../../backends/kind.ts'
import { Problem } from '../../domain/problems.ts'
import { scopeHere } from '../../domain/scope.ts'
import { asProblem, callUpstream, DeadlineError } from '../backends/call-upstream.ts'
import type { Core } from '../context.ts'
import type { Plan } from './issue-plan.ts'

export interface BackendAnswer {
  readonly issued: Issued
  /** Epoch ms: what may truthfully be promised. */
  readonly expiresAt: number
  readonly upstreamExpiresAt: number | null
}

/** Asks the backend for the secret and checks that the answer makes sense. */
export async function askBackend(core: Pick<Core, 'settings' | 'store'>, plan: Plan): Promise<BackendAnswer> {
  const { backend, caller } = plan
  const request = {
    credentialId: plan.id,
    agent: { id: caller.agentId, name: caller.agentName },
    scopes: plan.scopes.map((scope) => scopeHere(backend.name, scope)),
    params: plan.params,
    issuedAt: plan.now,
    expiresAt: plan.expiresAt,
  }
  let issued: Issued
  if (backend.kind.upstream) {
    // This node stood still since the intent: others may have looked for what is left of it already.
    if (core.store.now() - plan.now > core.settings.upstreamTimeoutMs) throw new DeadlineError()
    issued = await callUpstream(core, backend, (instance, signal) => instance.issue(request, signal))
  } else {
    try {
      issued = await (await backend.connect()).issue(request, NEVER)
    } catch (error) {
      throw asProblem(error)
    }
  }
  if (issued.secret === undefined && issued.fields === undefined)
    throw new Problem('backend_error', { detail: 'the kind gave neither secret nor fields' })
  if (issued.secret === '') throw new Problem('backend_error', { detail: 'the kind gave an empty secret' })
  const upstream = issued.upstreamExpiresAt
  if (upstream !== undefined && (!Number.isSafeInteger(upstream) || upstream <= plan.now)) {
    throw new Problem('backend_error', { detail: 'the kind gave an expiry that has passed' })
  }
  const expiresAt = Math.min(plan.expiresAt, upstream ?? Number.POSITIVE_INFINITY)
  // Told apart only where the upstream outlives what is promised.
  return {
    issued,
    expiresAt,
    upstreamExpiresAt: upstream !== undefined && upstream > expiresAt ? upstream : null,
  }
}

const NEVER = new AbortController().signal
