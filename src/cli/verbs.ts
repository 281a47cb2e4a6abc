import type { Entry, VerbGroup } from './frame/verb.ts'
import { ADMIN_VERBS } from './verbs/admin.ts'
import { AGENT_VERBS } from './verbs/agent.ts'
import { OTHER_VERBS } from './verbs/other.ts'
import { TOOL_VERBS } from './verbs/tools.ts'

/** The groups of the overview, in its order. */
export const GROUPS: readonly VerbGroup[] = [
  { title: 'For agents', verbs: AGENT_VERBS },
  { title: 'For other tools', verbs: TOOL_VERBS },
  { title: 'For administrators', verbs: ADMIN_VERBS },
  { title: 'Other', verbs: OTHER_VERBS },
]

/** Every verb. Its module is loaded only when it is called. */
export const VERBS: readonly Entry[] = GROUPS.flatMap(({ verbs }) => verbs)
