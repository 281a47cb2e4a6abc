import {
  DEVICE_LOGIN_MS,
  DEVICE_LOGINS_PER_MINUTE,
  DEVICE_POLL_MS,
  MAX_WAITING_LOGINS,
  MINUTE_MS,
} from '../../domain/limits.ts'
import { requireHostName } from '../../domain/people/authorization-request.ts'
import { shownUserCode } from '../../domain/people/user-code.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { mintLoginSecret, mintUserCode } from '../../keys/login-secrets.ts'
import type { Origin } from '../caller.ts'
import type { Core } from '../context.ts'
import { networkOf, siteOf } from '../network.ts'
import { takeOrRefuse } from '../rates.ts'
import { requireCommandClient } from './command-client.ts'

type Parts = Pick<Core, 'store' | 'hasher' | 'rates' | 'settings'>

/** RFC 8628 §3.2. Times are ms. */
export interface BegunDeviceLogin {
  readonly deviceCode: string
  /** As it is shown. */
  readonly userCode: string
  readonly verificationUri: string
  readonly expiresInMs: number
  readonly intervalMs: number
}

const TRIES = 3
/** Of one network's owner, of all that may wait. */
const SHARE = MAX_WAITING_LOGINS / 4

/**
 * A command without a browser asks for a login (RFC 8628 §3.1). Anybody may ask; nothing comes of it until a person types the code.
 * Throws `OAuthProblem`, `invalid_request` and `rate_limited`.
 */
export async function beginDeviceLogin(
  core: Parts,
  { client_id, host }: { readonly client_id?: string | undefined; readonly host?: string | undefined },
  origin: Origin,
): Promise<BegunDeviceLogin> {
  requireCommandClient(client_id)
  if (host === undefined) throw invalid('"host" is missing.')
  requireHostName(host)
  await requirePlace(core, origin)
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const begun = { deviceCode: mintLoginSecret('device'), userCode: mintUserCode() }
    const now = core.store.now()
    const step = core.store.commandLogins.insert({
      codeHash: core.hasher.hash(begun.deviceCode),
      kind: 'device',
      userCodeHash: core.hasher.hash(begun.userCode),
      state: 'waiting',
      host,
      ipAddress: origin.ipAddress,
      userAgent: origin.userAgent,
      operatorId: null,
      sessionId: null,
      redirectUri: null,
      codeChallenge: null,
      polledAt: null,
      pollMs: DEVICE_POLL_MS,
      createdAt: now,
      expiresAt: now + DEVICE_LOGIN_MS,
    })
    // Another waits under the same code: of 2^38 that is hardly ever so.
    if (!(await core.store.commit([step])).done) continue
    return {
      deviceCode: begun.deviceCode,
      userCode: shownUserCode(begun.userCode),
      verificationUri: `${core.settings.relyingParty.consoleUrl}/allow`,
      expiresInMs: DEVICE_LOGIN_MS,
      intervalMs: DEVICE_POLL_MS,
    }
  }
  throw new Error('no free user code was found')
}

async function requirePlace({ store, rates }: Parts, { ipAddress }: Origin): Promise<void> {
  const now = store.now()
  const message = 'Too many logins of commands begin in this network; try again later.'
  const own = { count: DEVICE_LOGINS_PER_MINUTE, perMs: MINUTE_MS }
  takeOrRefuse(rates, `device login|${networkOf(ipAddress)}`, own, now, message)
  const ofSite = { count: SHARE, perMs: DEVICE_LOGIN_MS }
  takeOrRefuse(rates, `device logins|${siteOf(ipAddress)}`, ofSite, now, message)
  if ((await store.commandLogins.countWaiting(now)) >= MAX_WAITING_LOGINS)
    throw new Problem('rate_limited', {
      message: 'Too many logins of commands wait for a person; log in with --browser, or try again later.',
      retryAfterSeconds: 60,
    })
}
