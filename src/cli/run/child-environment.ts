import type { Surroundings } from '../frame/surroundings.ts'
import { LOGIN_VARIABLES } from '../session/session.ts'

/** Variables that let their holder act as the agent. */
const LOGIN: ReadonlySet<string> = new Set(LOGIN_VARIABLES)

/** The command receives credentials, so it needs no login of its own. */
export function withoutLogin(env: Surroundings['env'], keepsLogin: boolean): Surroundings['env'] {
  return keepsLogin ? env : Object.fromEntries(Object.entries(env).filter(([name]) => !LOGIN.has(name)))
}
