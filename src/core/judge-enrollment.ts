import { nameKey, requireName } from '../domain/agent.ts'
import { type Admission, admissionBounds, type CompiledPolicy, decideAdmission } from '../domain/policy.ts'
import { Problem } from '../domain/problems.ts'
import type { Core, Settings } from './context.ts'

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
  const { maxAgents, rate } = admissionBounds(policy)
  const named = `The policy "${policy.name}"`
  if (maxAgents !== undefined && (await core.store.agents.countByPolicy(policy.name)) >= maxAgents)
    return `${named} has as many agents as it may have.`
  if (rate !== undefined && core.rates[how](`admit|${policy.name}`, rate, core.store.now()) > 0)
    return `${named} has admitted as many agents as it may in this time.`
  return undefined
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
