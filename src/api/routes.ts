import { ADMIN } from './routes/admin.ts'
import { ADMIN_SERVER } from './routes/admin-server.ts'
import { API_V1 } from './routes/api-v1.ts'
import { COMMANDS } from './routes/commands.ts'
import { LIVE } from './routes/live.ts'
import { OAUTH } from './routes/oauth.ts'
import { PEOPLE } from './routes/people.ts'
import { ROOT } from './routes/root.ts'
import { RUNS } from './routes/runs.ts'
import { SSO } from './routes/sso.ts'
import { V1 } from './routes/v1.ts'

export type { Route, RouteRule } from './routes/route.ts'

/**
 * Every route: who may call it, what it takes, answers and records. The server, the OpenAPI document and the types of the
 * client come from it. A route without an entry stops the boot, and so does an entry without a route.
 */
export const ROUTES: typeof ROOT &
  typeof OAUTH &
  typeof API_V1 &
  typeof V1 &
  typeof ADMIN &
  typeof ADMIN_SERVER &
  typeof LIVE &
  typeof PEOPLE &
  typeof SSO &
  typeof COMMANDS &
  typeof RUNS = {
  ...ROOT,
  ...OAUTH,
  ...API_V1,
  ...V1,
  ...ADMIN,
  ...ADMIN_SERVER,
  ...LIVE,
  ...PEOPLE,
  ...RUNS,
  ...SSO,
  ...COMMANDS,
}

export type RouteName = keyof typeof ROUTES
