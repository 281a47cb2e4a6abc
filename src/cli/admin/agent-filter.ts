import type { Agent } from '../../client/wire.ts'
import { readDuration } from '../frame/duration.ts'
import { text, type ValuesOf } from '../frame/options.ts'

const MOST_MS = 3_650 * 24 * 3_600_000

export const AGENT_FILTERS = {
  backend: text('<name>', 'only those with a scope of this backend', { values: 'backends' }),
  unusedFor: text('<duration>', 'only those that have not been used for this long, or never'),
  expiresWithin: text('<duration>', 'only those that expire in this time'),
}

/** Whether an agent meets every condition; undefined without conditions. Throws `CliError` (usage). */
export async function agentFilter(
  { backend, unusedFor, expiresWithin }: ValuesOf<typeof AGENT_FILTERS>,
  pattern: string | undefined,
  now: number,
): Promise<((agent: Agent) => boolean) | undefined> {
  const conditions: ((agent: Agent) => boolean)[] = []
  if (pattern !== undefined) {
    const isMatch = namePattern(pattern)
    conditions.push(({ name, id }) => isMatch(name) || id === pattern)
  }
  if (backend !== undefined) conditions.push(({ scopes }) => scopes.some((scope) => reaches(scope, backend)))
  if (unusedFor !== undefined) {
    const since = now - (await readDuration('--unused-for', unusedFor, MOST_MS))
    // One that was made since has not had the time.
    conditions.push(({ last_used, created_at }) => Date.parse(last_used ?? created_at) <= since)
  }
  if (expiresWithin !== undefined) {
    const until = now + (await readDuration('--expires-within', expiresWithin, MOST_MS))
    conditions.push(({ expires_at }) => expires_at !== null && Date.parse(expires_at) <= until)
  }
  if (conditions.length === 0) return undefined
  return (agent) => conditions.every((holds) => holds(agent))
}

/** Like the server, it ignores case in names. `*` stands for any text. */
function namePattern(pattern: string): (name: string) => boolean {
  const parts = pattern.toLowerCase().split('*')
  const [first = '', last = ''] = [parts[0], parts.at(-1)]
  return (name) => {
    const text = name.toLowerCase()
    if (parts.length === 1) return text === first
    if (!text.startsWith(first)) return false
    let at = first.length
    for (const part of parts.slice(1, -1)) {
      const found = text.indexOf(part, at)
      if (found < 0) return false
      at = found + part.length
    }
    return text.length - last.length >= at && text.endsWith(last)
  }
}

/** Whether the first segment of a scope names this backend, or a pattern that it matches. */
function reaches(scope: string, backend: string): boolean {
  const segment = (scope.split(':')[0] ?? '').toLowerCase()
  const name = backend.toLowerCase()
  return segment.endsWith('*') ? name.startsWith(segment.slice(0, -1)) : segment === name
}
