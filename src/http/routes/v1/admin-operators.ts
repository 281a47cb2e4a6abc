import { changeOperator, deleteOperator } from '../../../core/operators/change-operator.ts'
import { findOperator, findVisibleOperator, requireInvited } from '../../../core/operators/find-operator.ts'
import { type Invitation, inviteAgain, inviteOperator } from '../../../core/operators/invite-operator.ts'
import { listOperators } from '../../../core/operators/list-operators.ts'
import { endSession, endSessionsOf, listSessions } from '../../../core/sessions/end-session.ts'
import { makeLoginLink } from '../../../core/sessions/login-links.ts'
import { listPasskeys, removePasskey } from '../../../core/sessions/passkeys.ts'
import type { Operator } from '../../../domain/people/operator.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { linked } from '../paging.ts'
import { timestamp, timestampOrNull } from '../wire.ts'
import { presentIdentity, presentPasskey, presentSession } from './present-people.ts'

export function adminOperatorRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/operators', async (call) =>
    linked(call, await listOperators(core, call.query)).map(present),
  )

  addRoute(http, 'POST /v1/admin/operators', async ({ actor, body }) =>
    presentInvitation(await inviteOperator(core, actor, body)),
  )

  addRoute(http, 'GET /v1/admin/operators/:id', async ({ rule, actor, params }) =>
    present(await findVisibleOperator(core, actor, params.id, rule.scope ?? '')),
  )

  addRoute(http, 'PATCH /v1/admin/operators/:id', async ({ actor, params, body }) =>
    present(await changeOperator(core, actor, params.id, body)),
  )

  addRoute(http, 'DELETE /v1/admin/operators/:id', async ({ actor, params }) => {
    await deleteOperator(core, actor, params.id)
  })

  addRoute(http, 'POST /v1/admin/operators/:id/invitation', async ({ actor, params }) =>
    presentInvitation(await inviteAgain(core, actor, params.id)),
  )

  addRoute(http, 'POST /v1/admin/console/links', async ({ actor, body }) => {
    const named = body?.operator === undefined ? undefined : await findOperator(core, body.operator)
    if (named !== undefined) requireInvited(named)
    const { url, operator, expiresAt } = await makeLoginLink(core, actor, named)
    return { url, expires_at: timestamp(expiresAt), operator: operator?.email ?? null }
  })

  loginRoutes(http)
}

/** Their passkeys and sessions. */
function loginRoutes(http: Http): void {
  const { core } = http
  const { relyingParty } = core.settings

  addRoute(http, 'GET /v1/admin/operators/:id/passkeys', async ({ rule, actor, params }) => {
    const scope = rule.scope ?? ''
    const operator = await findVisibleOperator(core, actor, params.id, scope)
    const passkeys = await listPasskeys(core, actor, operator, scope)
    return passkeys.map((one) => presentPasskey(one, relyingParty))
  })

  addRoute(http, 'DELETE /v1/admin/operators/:id/passkeys/:passkey', async ({ rule, actor, params }) => {
    const scope = rule.scope ?? ''
    const operator = await findVisibleOperator(core, actor, params.id, scope)
    await removePasskey(core, actor, operator, params.passkey, scope)
  })

  addRoute(http, 'DELETE /v1/admin/operators/:id/sessions', async ({ rule, actor, params }) => {
    const operator = await findVisibleOperator(core, actor, params.id, rule.scope ?? '')
    return { ended: await endSessionsOf(core, actor, operator) }
  })

  addRoute(http, 'GET /v1/admin/sessions', async (call) => {
    const { rule, actor, query } = call
    const { operator: named, ...paging } = query
    const operator =
      named === undefined ? undefined : await findVisibleOperator(core, actor, named, rule.scope ?? '')
    return linked(call, await listSessions(core, actor, { ...paging, operatorId: operator?.id })).map(
      presentSession,
    )
  })

  addRoute(http, 'DELETE /v1/admin/sessions/:id', async ({ actor, params }) => {
    await endSession(core, actor, params.id)
  })
}

function present(operator: Operator) {
  return {
    id: operator.id,
    email: operator.email,
    name: operator.name,
    sso: presentIdentity(operator),
    scopes: operator.scopes,
    backend_scopes: operator.backendScopes,
    created_at: timestamp(operator.createdAt),
    created_by: operator.createdBy,
    joined_at: timestampOrNull(operator.joinedAt),
    last_login: timestampOrNull(operator.lastLoginAt),
  }
}

function presentInvitation({ operator, url, expiresAt }: Invitation) {
  return { ...present(operator), invitation: { url, expires_at: timestamp(expiresAt) } }
}
