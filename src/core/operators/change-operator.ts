import {
  holdsAllAdmin,
  type Operator,
  requireOperatorScopes,
  requireShownName,
} from '../../domain/people/operator.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { coversAny } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import { requireHeld } from '../agents/create-agent.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import { refuseCommand, requireConfirmedPower, requireConfirmedScopes } from '../confirm.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { endEntry } from '../sessions/end-session.ts'
import { findOperator, requireInvited } from './find-operator.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'settings' | 'denials' | 'rates'>

/** What is undefined stays as it is; scopes are replaced. */
export interface OperatorChanges {
  readonly name?: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly backend_scopes?: readonly string[] | undefined
}

/**
 * Takes effect on all nodes at once. Nobody gives more than they hold. Throws `operator_not_found`, `invalid_request`,
 * `conflict`, `insufficient_scope`, `confirmation_required`, and `not_allowed` for a command, and for a person of single
 * sign-on.
 */
export async function changeOperator(
  core: Parts,
  actor: Actor,
  named: string,
  changes: OperatorChanges,
): Promise<Operator> {
  requireWhole(core, actor)
  if (Object.values(changes).every((value) => value === undefined))
    throw invalid('The request changes nothing.')
  const before = await findOperator(core, named)
  requireInvited(before)
  const after: Operator = {
    ...before,
    name: changes.name ?? before.name,
    scopes: [...new Set(changes.scopes ?? before.scopes)],
    backendScopes: [...new Set(changes.backend_scopes ?? before.backendScopes)],
  }
  if (changes.name !== undefined) requireShownName(changes.name)
  requireOperatorScopes(after.scopes, after.backendScopes)
  const [old, all] = [scopesOf(before), scopesOf(after)]
  const added = all.filter((scope) => !coversAny(old, scope))
  requireHeld(core, actor, added, Number.POSITIVE_INFINITY)
  const other = await requireAnother(core, actor, before, holdsAllAdmin(after.scopes))
  refuseCommand(actor)
  await requireConfirmedScopes(core, actor, added)
  const details = {
    operator_id: before.id,
    email: before.email,
    ...(before.name === after.name ? {} : { name: after.name }),
    added,
    removed: old.filter((scope) => !coversAny(all, scope)),
  }
  const outcome = await commit(core, actor, [
    ...whileUnchanged(actor),
    ...core.store.operators.change(before, after),
    ...other,
    audit(core, actor, { action: 'operator.changed', scopes: after.scopes, details }),
  ])
  requireUnchanged(outcome)
  if (!outcome.done) throw changedMeanwhile()
  return { ...after, version: before.version + 1 }
}

const scopesOf = ({ scopes, backendScopes }: Operator) => [...scopes, ...backendScopes]

const changedMeanwhile = () =>
  new Problem('conflict', { message: 'The operators were changed at the same time; try again.' })

/** Ends the operator's sessions, passkeys and links with them. Throws as `changeOperator`. */
export async function deleteOperator(core: Parts, actor: Actor, named: string): Promise<void> {
  const operator = await findOperator(core, named)
  const other = await requireAnother(core, actor, operator, false)
  await requireConfirmedPower(core, actor)
  const sessions = await core.store.sessions.of(operator.id)
  const details = { operator_id: operator.id, email: operator.email }
  const outcome = await commit(
    core,
    actor,
    [
      ...core.store.operators.end(operator, core.store.now()),
      ...other,
      audit(core, actor, { action: 'operator.deleted', scopes: operator.scopes, details }),
      ...sessions.map((one) => endEntry(core, actor, one, operator, 'operator_deleted')),
    ],
    { urgent: true },
  )
  if (!outcome.done) throw changedMeanwhile()
}

/**
 * The last operator who has logged in and holds `admin:*` keeps it, except for a user who may open the server's socket. The
 * steps hold another such operator as they are, so that two cannot remove each other at once.
 */
async function requireAnother(
  { store }: Parts,
  { caller }: Actor,
  operator: Operator,
  keepsAll: boolean,
): Promise<Step[]> {
  // A person of single sign-on holds it only as long as somebody else says so.
  const isFull = ({ scopes, joinedAt, issuer }: Operator) =>
    issuer === null && joinedAt !== null && holdsAllAdmin(scopes)
  if (keepsAll || !isFull(operator)) return []
  if (caller.kind === 'local' && caller.method === 'unix_socket') return []
  const other = (await store.operators.joined()).find((one) => isFull(one) && one.id !== operator.id)
  if (other !== undefined) return [store.operators.requireUnchanged(other)]
  throw new Problem('conflict', {
    message:
      "This is the last operator with admin:*. Invite another first, or run this on the server's machine, over its admin.sock.",
  })
}
