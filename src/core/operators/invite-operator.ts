import {
  type Operator,
  requireEmail,
  requireOperatorScopes,
  requireShownName,
} from '../../domain/people/operator.ts'
import { Problem } from '../../domain/problems.ts'
import { requireHeld } from '../agents/create-agent.ts'
import { actorId, audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import { requireConfirmedPower } from '../confirm.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { newLink } from '../sessions/login-links.ts'
import { findOperator, requireInvited } from './find-operator.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'hasher' | 'settings' | 'denials' | 'rates'>

export interface InviteCommand {
  readonly email: string
  readonly name?: string | undefined
  readonly scopes: readonly string[]
  readonly backend_scopes?: readonly string[] | undefined
}

/** The address of the link is shown once. */
export interface Invitation {
  readonly operator: Operator
  readonly url: string
  readonly expiresAt: number
}

const FOREVER = Number.POSITIVE_INFINITY

/**
 * Throws `conflict` for an address that an operator has, `invalid_request`, `confirmation_required`, and
 * `insufficient_scope` for a narrowed token and for scopes that the caller does not hold.
 */
export async function inviteOperator(core: Parts, actor: Actor, command: InviteCommand): Promise<Invitation> {
  requireWhole(core, actor)
  const email = requireEmail(command.email)
  const name = command.name ?? email
  if (command.name !== undefined) requireShownName(name)
  const scopes = [...new Set(command.scopes)]
  const backendScopes = [...new Set(command.backend_scopes)]
  requireOperatorScopes(scopes, backendScopes)
  requireHeld(core, actor, [...scopes, ...backendScopes], FOREVER)
  await requireConfirmedPower(core, actor)
  const now = core.store.now()
  const operator: Operator = {
    id: core.ids.id('operator'),
    email,
    name,
    scopes,
    backendScopes,
    version: 1,
    logins: 0,
    createdAt: now,
    createdBy: actorId(actor),
    joinedAt: null,
    lastLoginAt: null,
    endedAt: null,
    provider: null,
    issuer: null,
    subject: null,
  }
  const link = newLink(core, actor, 'invitation', operator.id)
  const outcome = await commit(core, actor, [
    ...whileUnchanged(actor),
    core.store.operators.insert(operator),
    link.step,
    invited(core, actor, operator),
  ])
  requireUnchanged(outcome)
  if (!outcome.done)
    throw new Problem('conflict', { message: 'There is an operator with this address already.' })
  return { operator, url: link.url, expiresAt: link.expiresAt }
}

/**
 * Another invitation for an operator, which logs in the person who has it: for one who lost their passkeys, or missed the first. The
 * one before ends. Requires what inviting them requires. Throws `operator_not_found`, and as `inviteOperator`.
 */
export async function inviteAgain(core: Parts, actor: Actor, named: string): Promise<Invitation> {
  requireWhole(core, actor)
  const operator = await findOperator(core, named)
  requireInvited(operator)
  requireHeld(core, actor, [...operator.scopes, ...operator.backendScopes], FOREVER)
  await requireConfirmedPower(core, actor)
  const link = newLink(core, actor, 'invitation', operator.id)
  const outcome = await commit(core, actor, [
    ...whileUnchanged(actor),
    core.store.operators.requireUnchanged(operator),
    core.store.sessions.dropInvitations(operator.id),
    link.step,
    invited(core, actor, operator),
  ])
  requireUnchanged(outcome)
  if (!outcome.done)
    throw new Problem('conflict', { message: 'This operator was changed at the same time; try again.' })
  return { operator, url: link.url, expiresAt: link.expiresAt }
}

function invited(core: Parts, actor: Actor, { id, email, name, scopes, backendScopes }: Operator) {
  const details = { operator_id: id, email, name, backend_scopes: backendScopes }
  return audit(core, actor, { action: 'operator.invited', scopes, details })
}
