import type { Handle, Issued } from '../../backends/kind.ts'
import { DeadlineError } from '../../domain/abort.ts'
import { isName } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import { scopeHere } from '../../domain/scope.ts'
import { asProblem, callEntered, type Entered } from '../backends/call-upstream.ts'
import type { Core } from '../context.ts'
import type { Granted, IssuedCredential } from './issue-attempt.ts'

/** The checked answer of the backend. */
export interface BackendAnswer {
  readonly secret: string
  /** The store keeps a hash of it. */
  readonly presented: string
  readonly fields: Issued['fields']
  /** Epoch ms: the expiry that Mayfly can promise. */
  readonly expiresAt: number
  readonly upstreamExpiresAt: number | null
  readonly handle: Handle | undefined
  readonly facts: Issued['facts']
}

/** Asks the backend for the secret and checks that the answer makes sense. `entered`: for an upstream. */
export async function askBackend(
  core: Pick<Core, 'settings' | 'store' | 'backends' | 'health'>,
  attempt: Granted,
  entered?: Entered,
): Promise<BackendAnswer> {
  const { backend, plan, holder } = attempt
  const request = {
    credentialId: plan.id,
    // Kinds write the name into names and labels: an e-mail address would not fit there.
    agent: { id: holder.agentId, name: isName(holder.agentName) ? holder.agentName : holder.agentId },
    scopes: plan.scopes.map((scope) => scopeHere(backend.name, scope)),
    params: plan.params,
    issuedAt: plan.now,
    expiresAt: plan.expiresAt,
  }
  let issued: Issued
  if (entered !== undefined) {
    if (core.store.now() - plan.now > core.settings.upstreamTimeoutMs) {
      // This node has been suspended since the commit: others may already have looked for what it left behind.
      entered.pass.cancel()
      throw new DeadlineError()
    }
    issued = await callEntered(core, backend, entered, (instance, signal) => instance.issue(request, signal))
  } else {
    try {
      issued = await (await backend.connect()).issue(request, NEVER)
    } catch (error) {
      throw asProblem(error)
    }
  }
  return checked(issued, plan.now, plan.expiresAt)
}

const NEVER = new AbortController().signal

function checked(issued: Issued, now: number, asked: number): BackendAnswer {
  const { fields, upstreamExpiresAt: upstream, handle, facts } = issued
  if (issued.secret === undefined && fields === undefined) throw nonsense('neither secret nor fields')
  if (issued.secret === '') throw nonsense('an empty secret')
  if (upstream !== undefined && (!Number.isSafeInteger(upstream) || upstream <= now))
    throw nonsense('an expiry that has passed')
  const expiresAt = Math.min(asked, upstream ?? Number.POSITIVE_INFINITY)
  const secret = issued.secret ?? JSON.stringify(fields)
  return {
    secret,
    presented: issued.presented ?? secret,
    fields,
    expiresAt,
    // Mentioned only if the upstream outlives the promised expiry.
    upstreamExpiresAt: upstream !== undefined && upstream > expiresAt ? upstream : null,
    handle,
    facts,
  }
}

function nonsense(what: string): Problem {
  return new Problem('backend_error', { detail: `the kind returned ${what}` })
}

export function replyOf(
  { backend, plan }: Granted,
  { secret, fields, expiresAt, upstreamExpiresAt }: BackendAnswer,
): IssuedCredential & { readonly secret: string } {
  return {
    id: plan.id,
    secret,
    fields,
    backend: backend.name,
    scopes: plan.scopes,
    leftOut: plan.leftOut,
    ttlMs: plan.ttlMs,
    createdAt: plan.now,
    expiresAt,
    upstreamExpiresAt,
  }
}
