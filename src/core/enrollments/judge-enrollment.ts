import { nameKey, requireName } from '../../domain/agent.ts'
import { type Admission, admissionBounds, type CompiledPolicy, decideAdmission } from '../../domain/policy.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { Core, Settings } from '../context.ts'

export const TAKEN = 'An agent of this name exists already.'

export interface AskedAdmission {
  readonly name: string
  /** Undefined: what the policy gives. */
  readonly scopes?: readonly string[] | undefined
}

export interface Judgement {
  readonly admission: Admission<Settings['policies'][number]>
  /** What the agent is to hold, or what an administrator is asked for. */
  readonly scopes: readonly string[]
  /** Why an administrator must look at it; empty when nothing stands against it but the bounds of the policy. */
  readonly note: string
}

/** The whole decision on an enrollment but the bounds, for enrolling and for explaining. Throws `invalid_request`. */
export async function judgeEnrollment(
  core: Pick<Core, 'store' | 'settings'>,
  { name, scopes }: AskedAdmission,
): Promise<Judgement> {
  const reserved = reservedNote(name)
  const taken = (await core.store.agents.findByName(nameKey(name))) === undefined ? undefined : TAKEN
  const admission = decideAdmission(core.settings.policies, { name, scopes })
  const notes = [reserved, taken, admission.decision === 'wait' ? admission.reason : undefined]
  return {
    admission,
    // Without scopes of its own the request is for what the policy gives; an administrator may still decide so.
    scopes: [...new Set(scopes ?? admission.policy?.scopes ?? [])],
    note: notes.filter((one) => one !== undefined).join(' '),
  }
}

/** Why the policy may not admit one more now. `take` counts this one; `wait` only asks. */
export async function boundsNote(
  core: Pick<Core, 'store' | 'rates'>,
  policy: CompiledPolicy,
  how: 'take' | 'wait',
): Promise<string | undefined> {
  const { rate } = admissionBounds(policy)
  const full = await fullNote(core, policy)
  if (full !== undefined) return full
  if (rate !== undefined && core.rates[how](`admit|${policy.name}`, rate, core.store.now()) > 0)
    return `The policy "${policy.name}" has admitted as many agents as it may in this time.`
  return undefined
}

/** Why the policy may not have one more agent. */
export async function fullNote(
  core: Pick<Core, 'store'>,
  policy: CompiledPolicy,
): Promise<string | undefined> {
  const { maxAgents } = admissionBounds(policy)
  if (maxAgents === undefined || (await core.store.agents.countByPolicy(policy.name)) < maxAgents)
    return undefined
  return `The policy "${policy.name}" has as many agents as it may have.`
}

/**
 * To be read before the agents are counted, and committed first: refused when any node has admitted another by this
 * policy since, so that what was counted still is so.
 */
export async function admissionTurn(core: Pick<Core, 'store'>, policy: CompiledPolicy): Promise<Step[]> {
  if (admissionBounds(policy).maxAgents === undefined) return []
  const { meta } = core.store
  const key = `admitted|${policy.name}`
  const admitted = await meta.get(key)
  return [
    admitted === undefined ? meta.add(key, '1') : meta.replace(key, admitted, `${Number(admitted) + 1}`),
  ]
}

/** A reserved name is well-formed: that it is reserved is for the administrator. Throws `invalid_request`. */
export function reservedNote(name: string): string | undefined {
  try {
    requireName(name)
    return undefined
  } catch (error) {
    if (error instanceof Problem && error.code === 'conflict') return error.message
    throw error
  }
}
