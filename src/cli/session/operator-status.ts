import { MayflyError } from '../../client/client.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'
import { clientFor } from './open.ts'
import { type KeptOperator, nameOf } from './profiles.ts'
import { findStoredOperator, type Target } from './session.ts'

/** The operator's login of a profile, as the server sees it. */
export interface OperatorStatus {
  readonly id: string
  readonly email: string | null
  readonly name: string
  readonly login: KeptOperator['method']
  readonly login_from: KeptOperator['secret_in']
  readonly session: string
  readonly expires_at: string
  /** `ended`: expired, or ended by somebody. */
  readonly state: 'active' | 'ended'
}

/** Undefined without one. Throws what the client throws, but for a login that has ended. */
export async function lookAtOperator(context: Context, target: Target): Promise<OperatorStatus | undefined> {
  const kept = target.profile?.operator
  if (kept === undefined) return undefined
  const { id, email = null, name, method: login, secret_in: login_from, session, expires: expires_at } = kept
  const isActive = Date.parse(expires_at) > context.now() && (await isAccepted(context, target))
  return { id, email, name, login, login_from, session, expires_at, state: isActive ? 'active' : 'ended' }
}

async function isAccepted(context: Context, target: Target): Promise<boolean> {
  const token = await findStoredOperator(context, target)
  if (token === undefined) return false
  try {
    await (await clientFor(context, target, { kind: 'bearer', token })).admin.me()
    return true
  } catch (error) {
    if (error instanceof MayflyError && error.status === 401) return false
    throw error
  }
}

/** Who, and until when. */
export function operatorInWords({ email, name, state, expires_at }: OperatorStatus, now: number): string {
  const who = nameOf({ email: email ?? undefined, name })
  return `${who}, ${state === 'active' ? `ends ${relative(expires_at, now)}` : 'has ended'}`
}
