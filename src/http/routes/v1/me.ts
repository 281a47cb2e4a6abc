import { ROUTES, type Route } from '../../../api/routes.ts'
import type { Caller } from '../../../core/caller.ts'
import { coversAny, isAdminScope } from '../../../domain/scope.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { timestamp, timestampOrNull } from '../wire.ts'
import { presentIdentity } from './present-people.ts'

export function meRoutes(http: Http): void {
  const { core } = http
  addRoute(http, 'GET /v1/admin/me', async ({ actor: { caller } }) => {
    const operations = operationsOf(caller)
    switch (caller.kind) {
      case 'local':
        return { kind: 'local', scopes: ['admin:*'], operations }
      case 'agent':
        return {
          kind: 'agent',
          id: caller.agentId,
          name: caller.agentName,
          scopes: caller.scopes,
          operations,
        }
      case 'operator': {
        const operator = await core.store.operators.findLiving(caller.operatorId)
        const sso = operator && presentIdentity(operator)
        return {
          kind: 'operator',
          id: caller.operatorId,
          name: operator?.name ?? caller.actor,
          ...(caller.email === null ? {} : { email: caller.email }),
          ...(sso && { sso }),
          scopes: caller.scopes.filter(isAdminScope),
          backend_scopes: caller.scopes.filter((scope) => !isAdminScope(scope)),
          operations,
          session: {
            id: caller.session.id,
            method: caller.session.method,
            expires_at: timestamp(caller.session.expiresAt),
            may_register_until: timestampOrNull(caller.session.mayRegisterUntil),
          },
        }
      }
    }
  })
}

/** Those that the gate admits the caller to; core may still refuse what they ask for. */
function operationsOf(caller: Caller): string[] {
  return Object.values<Route>(ROUTES)
    .filter((route) => isAdmitted(route, caller))
    .map(({ id }) => id)
    .sort()
}

function isAdmitted({ access, scope }: Route, caller: Caller): boolean {
  switch (access) {
    case 'public':
      return false
    case 'agent':
      return caller.kind === 'agent'
    case 'session':
      return caller.kind === 'operator' && caller.method === 'session'
    case 'reader':
      return true
    case 'admin':
      return caller.kind === 'local' || scope === undefined || coversAny(caller.scopes, scope)
  }
}
