import { isId } from '../../domain/ids.ts'
import { type Operator, requireEmail } from '../../domain/people/operator.ts'
import { Problem } from '../../domain/problems.ts'
import { requireScope } from '../authentication/authenticate.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'denials'>

/** By id or e-mail address. Throws `operator_not_found`. */
export async function findOperator({ store }: Pick<Core, 'store'>, named: string): Promise<Operator> {
  const found = isId('operator', named)
    ? await store.operators.findLiving(named)
    : await store.operators.findByEmail(addressOf(named))
  if (found === undefined) throw new Problem('operator_not_found')
  return found
}

/** Throws `not_allowed` for a person of single sign-on, of whom their provider says everything. */
export function requireInvited({ issuer }: Operator): void {
  if (issuer !== null)
    throw new Problem('not_allowed', {
      message:
        'This person logs in by single sign-on: their name and their scopes come from there, at each login. Change their groups at the provider, or the setting sso of this server.',
    })
}

function addressOf(named: string): string {
  try {
    return requireEmail(named)
  } catch {
    return ''
  }
}

/**
 * The caller themself, or any with `scope`. Without the scope, an operator who does not exist is refused as one who does.
 * Throws `insufficient_scope` and `operator_not_found`.
 */
export async function findVisibleOperator(
  core: Parts,
  actor: Actor,
  named: string,
  scope: string,
): Promise<Operator> {
  const { caller } = actor
  if (caller.kind === 'operator' && (named === caller.operatorId || named.toLowerCase() === caller.email))
    return findOperator(core, caller.operatorId)
  requireScope(core, actor, scope)
  return findOperator(core, named)
}
