import type { Agent } from '../../../../src/client/wire.ts'

export const FILTERS = ['name', 'policy', 'backend', 'show'] as const
export type Filters = Readonly<Record<(typeof FILTERS)[number], string | undefined>>

const DAY_MS = 86_400_000
/** What `show` means, as the options of `mayfly agent ls` do. */
export const SHOWN: Readonly<
  Record<
    string,
    { readonly title: string; readonly flag: string; readonly holds: (agent: Agent, now: number) => boolean }
  >
> = {
  ending: {
    title: 'End within 7 days',
    flag: '--expires-within 7d',
    holds: ({ expires_at }, now) => expires_at !== null && Date.parse(expires_at) <= now + 7 * DAY_MS,
  },
  unused: {
    title: 'Unused for 30 days',
    flag: '--unused-for 30d',
    holds: ({ last_used, created_at }, now) => Date.parse(last_used ?? created_at) <= now - 30 * DAY_MS,
  },
  holding: {
    title: 'With live credentials',
    flag: '',
    holds: ({ live }) => live !== undefined && live > 0,
  },
}

/** Whether an agent is shown: every filter holds. A name and an owner match by a part of them. */
export function isShown(agent: Agent, filters: Filters, now: number): boolean {
  const { name, policy, backend, show } = filters
  const text = name?.toLowerCase()
  const words = [agent.name, agent.owner ?? '', agent.description ?? '']
  if (text !== undefined && !words.some((one) => one.toLowerCase().includes(text))) return false
  if (policy !== undefined && agent.policy !== policy) return false
  if (backend !== undefined && !agent.scopes.some((scope) => mayUse(scope, backend))) return false
  return show === undefined || SHOWN[show]?.holds(agent, now) !== false
}

function mayUse(scope: string, backend: string): boolean {
  const [first = ''] = scope.split(':')
  return first === backend || (first.endsWith('*') && backend.startsWith(first.slice(0, -1)))
}
