import type { Surroundings } from '../surroundings.ts'

/** What makes whoever has it the agent. */
const LOGIN = new Set([
  'MAYFLY_TOKEN',
  'MAYFLY_TOKEN_FILE',
  'MAYFLY_CLIENT_ID',
  'MAYFLY_CLIENT_SECRET',
  'MAYFLY_CLIENT_SECRET_FILE',
])

/** The command is given credentials so that it needs no login of its own. */
export function withoutLogin(env: Surroundings['env'], keepsLogin: boolean): Surroundings['env'] {
  return keepsLogin ? env : Object.fromEntries(Object.entries(env).filter(([name]) => !LOGIN.has(name)))
}
