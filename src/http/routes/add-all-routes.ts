import { docsRoutes } from '../routing/docs-page.ts'
import { openApiRoutes } from '../routing/openapi.ts'
import type { Http } from '../routing/route.ts'
import { auditRoutes } from './api-v1/audit.ts'
import { backendRoutes } from './api-v1/backends.ts'
import { credentialRoutes } from './api-v1/credentials.ts'
import { consolePageRoutes, type ReadConsoleFiles, refuseConsole } from './console-pages.ts'
import { type HealthParts, healthRoutes } from './health.ts'
import { oauthRoutes } from './oauth/oauth.ts'
import { registryTokenRoutes } from './registry-token.ts'
import { adminActivityRoutes } from './v1/admin-activity.ts'
import { adminAgentRoutes } from './v1/admin-agents.ts'
import { adminBackendRoutes } from './v1/admin-backends.ts'
import { adminKeyRoutes } from './v1/admin-keys.ts'
import { adminLiveRoutes } from './v1/admin-live.ts'
import { adminNotifyRoutes } from './v1/admin-notify.ts'
import { adminOperatorRoutes } from './v1/admin-operators.ts'
import { adminPendingRoutes } from './v1/admin-pending.ts'
import { adminPluginRoutes } from './v1/admin-plugins.ts'
import { adminPolicyRoutes } from './v1/admin-policies.ts'
import { adminServerRoutes, type ServerParts } from './v1/admin-server.ts'
import { adminTokenRoutes } from './v1/admin-tokens.ts'
import { consoleCommandRoutes } from './v1/console-commands.ts'
import { consoleLoginRoutes } from './v1/console-logins.ts'
import { backendCredentialRoutes } from './v1/credentials.ts'
import { enrollRoutes } from './v1/enroll.ts'
import { meRoutes } from './v1/me.ts'
import { requestRoutes } from './v1/request.ts'
import { runRoutes } from './v1/runs.ts'
import { ssoLoginRoutes } from './v1/sso-logins.ts'
import { statusRoutes } from './v1/status.ts'
import { wellKnownRoutes } from './well-known.ts'

export interface RouteParts {
  readonly metrics: HealthParts['metrics']
  /** Whether `GET /v1/credentials/:backend` issues. */
  readonly issueByGet: boolean
  readonly reload: ServerParts
  readonly consoleFiles: ReadConsoleFiles
}

/** Registers every route of the server; a new file of routes needs a line here. */
export function addAllRoutes(http: Http, { metrics, issueByGet, reload, consoleFiles }: RouteParts): void {
  const { settings, store } = http.core
  healthRoutes(http, { version: settings.version, trouble: store.trouble, metrics })
  openApiRoutes(http)
  docsRoutes(http)
  wellKnownRoutes(http)
  registryTokenRoutes(http)
  oauthRoutes(http)
  credentialRoutes(http)
  backendRoutes(http)
  auditRoutes(http)
  statusRoutes(http)
  runRoutes(http)
  backendCredentialRoutes(http, { issueByGet })
  enrollRoutes(http)
  requestRoutes(http)
  adminAgentRoutes(http)
  adminBackendRoutes(http)
  adminTokenRoutes(http)
  adminActivityRoutes(http)
  adminPendingRoutes(http)
  adminPolicyRoutes(http)
  adminPluginRoutes(http)
  adminKeyRoutes(http)
  adminServerRoutes(http, reload)
  adminLiveRoutes(http)
  adminNotifyRoutes(http)
  adminOperatorRoutes(http)
  meRoutes(http)
  if (settings.console === 'on') {
    consoleLoginRoutes(http)
    ssoLoginRoutes(http)
    consoleCommandRoutes(http)
    consolePageRoutes(http, consoleFiles)
  } else refuseConsole(http)
}
