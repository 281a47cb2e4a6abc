import type { Entry } from './frame/verb.ts'
import { ADMIN_VERBS } from './verbs/admin.ts'
import { AGENT_VERBS } from './verbs/agent.ts'
import { OTHER_VERBS } from './verbs/other.ts'
import { TOOL_VERBS } from './verbs/tools.ts'

/** Every verb, in the order of the overview. Each is loaded only when it is called. */
export const VERBS: readonly Entry[] = [...AGENT_VERBS, ...TOOL_VERBS, ...ADMIN_VERBS, ...OTHER_VERBS]
