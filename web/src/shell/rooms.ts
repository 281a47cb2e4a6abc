import { paths } from '../paths.ts'
import { type Later, later } from './later.ts'

export interface Room {
  readonly name: string
  readonly path: string
  /** The letter after G. */
  readonly letter: string
  /** An operation that the caller needs to see anything here. */
  readonly operation: string
  readonly code: Later
  readonly group: 'daily' | 'setup'
}

/** In the order of use. Each is loaded when it is first opened. */
export const ROOMS: readonly Room[] = [
  {
    name: 'Overview',
    path: paths.overview(),
    letter: 'O',
    operation: 'getMe',
    code: later(async () => (await import('../rooms/overview/overview.tsx')).Overview),
    group: 'daily',
  },
  {
    name: 'Inbox',
    path: paths.inbox(),
    letter: 'I',
    operation: 'listPending',
    code: later(async () => (await import('../rooms/inbox/inbox.tsx')).Inbox),
    group: 'daily',
  },
  {
    name: 'Credentials',
    path: paths.credentials(),
    letter: 'C',
    operation: 'listCredentials',
    code: later(async () => (await import('../rooms/credentials/credentials.tsx')).Credentials),
    group: 'daily',
  },
  {
    name: 'Runs',
    path: paths.runs(),
    letter: 'R',
    operation: 'listAllRuns',
    code: later(async () => (await import('../rooms/runs/runs.tsx')).Runs),
    group: 'daily',
  },
  {
    name: 'Agents',
    path: paths.agents(),
    letter: 'A',
    operation: 'listAgents',
    code: later(async () => (await import('../rooms/agents/agents.tsx')).Agents),
    group: 'daily',
  },
  {
    name: 'Backends',
    path: paths.backends(),
    letter: 'B',
    operation: 'listBackends',
    code: later(async () => (await import('../rooms/backends/backends.tsx')).Backends),
    group: 'daily',
  },
  {
    name: 'Activity',
    path: paths.activity(),
    letter: 'T',
    operation: 'queryWholeAudit',
    code: later(async () => (await import('../rooms/activity/activity.tsx')).Activity),
    group: 'daily',
  },
  {
    name: 'Policies',
    path: paths.policies(),
    letter: 'P',
    operation: 'listPolicies',
    code: later(async () => (await import('../rooms/policies/policies.tsx')).Policies),
    group: 'setup',
  },
  {
    name: 'Kinds and plugins',
    path: paths.kinds(),
    letter: 'N',
    operation: 'listKinds',
    code: later(async () => (await import('../rooms/kinds/kinds.tsx')).Kinds),
    group: 'setup',
  },
  {
    name: 'Keys',
    path: paths.keys(),
    letter: 'Y',
    operation: 'listAgentKeys',
    code: later(async () => (await import('../rooms/keys/keys.tsx')).KeysRoom),
    group: 'setup',
  },
  {
    name: 'People',
    path: paths.people(),
    letter: 'E',
    operation: 'listOperators',
    code: later(async () => (await import('../rooms/people/people.tsx')).People),
    group: 'setup',
  },
  {
    name: 'Settings',
    path: paths.settings(),
    letter: 'S',
    operation: 'listSettings',
    code: later(async () => (await import('../rooms/settings/settings.tsx')).SettingsRoom),
    group: 'setup',
  },
]

/** The account of the person who is logged in: reached by their name. */
export const ACCOUNT: Room = {
  name: 'My account',
  path: paths.account(),
  letter: 'M',
  operation: 'getMe',
  code: later(async () => (await import('../rooms/account/account.tsx')).Account),
  group: 'setup',
}

/** The room of an address; the longest path that begins it. */
export function roomOf(location: string): Room | undefined {
  const path = location.split('?')[0] ?? ''
  return [ACCOUNT, ...ROOMS]
    .filter((one) => path === one.path || path.startsWith(`${one.path}/`))
    .sort((a, b) => b.path.length - a.path.length)[0]
}
