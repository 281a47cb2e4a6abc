import { requireName } from '../../domain/agent.ts'
import { type Admission, admissionBounds, type CompiledPolicy, decideAdmission } from '../../domain/policy.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { Core, Settings } from '../context.ts'
import { heldByEntry } from '../reserved-name.ts'

export const TAKEN = 'An agent with this name already exists.'
export const REPLACE = `${TAKEN} Approve with "replace": true to delete it first, or reject.`

export interface AskedAdmission {
  readonly name: string
  /** Undefined: the scopes that the policy gives. */
  readonly scopes?: readonly string[] | undefined
}

export interface Judgement {
  readonly admission: Admission<Settings['policies'][number]>
  /** The scopes that the agent would hold, or that an administrator is asked for. */
  readonly scopes: readonly string[]
  /** Whether a living agent has this name. */
  readonly isTaken: boolean
  /** Why an administrator has to decide; empty when only the bounds of the policy can still object. */
  readonly note: string
}

/** The decision on an enrollment without the bounds, for enrolling and for explaining. Throws `invalid_request`. */
export async function judgeEnrollment(
  core: Pick<Core, 'store' | 'settings' | 'identities'>,
  { name, scopes }: AskedAdmission,
): Promise<Judgement> {
  const reserved = reservedNote(name) ?? heldByEntry(core, name)
  const isTaken = (await core.store.agents.findByName(name)) !== undefined
  const admission = decideAdmission(core.settings.policies, { name, scopes })
  // A policy that approves gives another name (ADR 0028).
  const waits = admission.decision === 'wait' ? [isTaken ? TAKEN : undefined, admission.reason] : []
  const notes = [reserved, ...waits]
  return {
    admission,
    isTaken,
    // A request without scopes asks for those of the policy, also when an administrator decides.
    scopes: [...new Set(scopes ?? admission.policy?.scopes ?? [])],
    note: notes.filter((one) => one !== undefined).join(' '),
  }
}

/** The policy that decides about this name. */
export function policyFor({ settings }: Pick<Core, 'settings'>, name: string): CompiledPolicy | undefined {
  return settings.policies.find((policy) => policy.matches(name))
}

/** Why the policy cannot admit another agent now. `take` counts this one; `wait` only asks. */
export async function boundsNote(
  core: Pick<Core, 'store' | 'rates'>,
  policy: CompiledPolicy,
  how: 'take' | 'wait',
): Promise<string | undefined> {
  const { rate } = admissionBounds(policy)
  const full = await fullNote(core, policy)
  if (full !== undefined) return full
  if (rate !== undefined && core.rates[how](`admit|${policy.name}`, rate, core.store.now()) > 0)
    return `The policy "${policy.name}" has reached its rate limit.`
  return undefined
}

/** Why the policy cannot have another agent. */
export async function fullNote(
  core: Pick<Core, 'store'>,
  policy: CompiledPolicy,
): Promise<string | undefined> {
  const { maxAgents } = admissionBounds(policy)
  if (maxAgents === undefined || (await core.store.agents.countByPolicy(policy.name)) < maxAgents)
    return undefined
  return `The policy "${policy.name}" has reached its maximum number of agents.`
}

/**
 * Counts an admission by this policy. Call it before the agents are counted, and put its steps first in the commit: the
 * store refuses them when any node has admitted another agent since, so that the number counted is still right.
 */
export async function countAdmission(core: Pick<Core, 'store'>, policy: CompiledPolicy): Promise<Step[]> {
  if (admissionBounds(policy).maxAgents === undefined) return []
  const { meta } = core.store
  const key = `admitted|${policy.name}`
  const admitted = await meta.get(key)
  return [
    admitted === undefined ? meta.add(key, '1') : meta.replace(key, admitted, `${Number(admitted) + 1}`),
  ]
}

/** A reserved name is well-formed: only the administrator learns that it is reserved. Throws `invalid_request`. */
export function reservedNote(name: string): string | undefined {
  try {
    requireName(name)
    return undefined
  } catch (error) {
    if (error instanceof Problem && error.code === 'conflict') return error.message
    throw error
  }
}
