import type { Scenario } from './scenario.ts'
import { issuePostgres, issueSqlite } from './scenarios/issue.ts'
import { status } from './scenarios/status.ts'
import { token } from './scenarios/token.ts'

/** In the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [issueSqlite, issuePostgres, status, token]
