import type { Scenario } from './scenario.ts'
import { accountKinds } from './scenarios/account-kinds.ts'
import { activity } from './scenarios/activity.ts'
import { agentChurn, agentChurnKeyless } from './scenarios/agent-churn.ts'
import { auditQuery } from './scenarios/audit-query.ts'
import { commandLine } from './scenarios/command-line.ts'
import { consoleRooms } from './scenarios/console.ts'
import { events } from './scenarios/events.ts'
import { issuePostgres, issueSqlite } from './scenarios/issue.ts'
import { issueForRun } from './scenarios/issue-for-run.ts'
import { keyless } from './scenarios/keyless.ts'
import { latencyOneClient } from './scenarios/latency-one-client.ts'
import { observed } from './scenarios/observed.ts'
import { people } from './scenarios/people.ts'
import { plugin } from './scenarios/plugin.ts'
import { postgresKind } from './scenarios/postgres-kind.ts'
import { proxy } from './scenarios/proxy.ts'
import { runs } from './scenarios/runs.ts'
import { silentNameServer } from './scenarios/silent-name-server.ts'
import { slowUpstream } from './scenarios/slow-upstream.ts'
import { startUp } from './scenarios/start-up.ts'
import { localAdmin, status } from './scenarios/status.ts'
import { sweep } from './scenarios/sweep.ts'
import { token } from './scenarios/token.ts'

/** In the order of the run. */
export const SCENARIOS: readonly Scenario[] = [
  issueSqlite,
  issuePostgres,
  latencyOneClient,
  status,
  token,
  keyless,
  localAdmin,
  agentChurn,
  agentChurnKeyless,
  auditQuery,
  activity,
  observed,
  people,
  runs,
  issueForRun,
  events,
  consoleRooms,
  sweep,
  slowUpstream,
  silentNameServer,
  postgresKind,
  accountKinds,
  plugin,
  proxy,
  startUp,
  commandLine,
]
