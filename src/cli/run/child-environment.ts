import type { Surroundings } from '../frame/surroundings.ts'
import { LOGIN_VARIABLES } from '../session/session.ts'

/** What makes whoever has it the agent. */
const LOGIN: ReadonlySet<string> = new Set(LOGIN_VARIABLES)

/** The command is given credentials so that it needs no login of its own. */
export function withoutLogin(env: Surroundings['env'], keepsLogin: boolean): Surroundings['env'] {
  return keepsLogin ? env : Object.fromEntries(Object.entries(env).filter(([name]) => !LOGIN.has(name)))
}
