import { MAX_NAME_LENGTH } from '../../domain/limits.ts'
import type { CompiledPolicy } from '../../domain/policy.ts'
import type { Core } from '../context.ts'

/** 40 random bits. */
const SUFFIX_LENGTH = 8

/**
 * The name of an agent that a policy approves: the requested one, or one with a random suffix if the policy says so or the
 * name is taken. So the answer is the same whether or not an agent has the name (ADR 0028).
 */
export function admittedName(
  core: Pick<Core, 'ids'>,
  policy: CompiledPolicy,
  requested: string,
  isTaken: boolean,
): string {
  if (policy.suffix !== true && !isTaken) return requested
  const suffix = core.ids.body().slice(-SUFFIX_LENGTH)
  return `${requested.slice(0, MAX_NAME_LENGTH - SUFFIX_LENGTH - 1)}-${suffix}`
}
