import { DEVICE_POLL_MS, MINUTE_MS } from '../../domain/limits.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import type { CommandLogin } from '../../domain/people/session.ts'
import { invalid } from '../../domain/problems.ts'
import { isLoginSecret } from '../../keys/login-secrets.ts'
import type { Origin } from '../caller.ts'
import { countFailure, requireLoginRate } from '../sessions/login-limits.ts'
import { requireCommandClient } from './command-client.ts'
import { type CommandParts, type StartedCommand, startCommandSession } from './start-command-session.ts'

/** More than a command that keeps to its interval asks. Beyond, the answer costs no look at the store. */
const POLLS = { count: 30, perMs: MINUTE_MS }
/** Two nodes may have different clocks, and an answer that was late may be followed soon by the next question. */
const EARLY_MS = 1_000

/**
 * One poll of a command that began a device login (RFC 8628 §3.4). Throws `OAuthProblem` with the codes of §3.5: `expired_token` is
 * the same for a code that is unknown, has expired, or was used. Throws `invalid_request` and `rate_limited`.
 */
export async function redeemDeviceCode(
  core: CommandParts,
  {
    client_id,
    device_code: code,
  }: { readonly client_id?: string | undefined; readonly device_code?: string | undefined },
  origin: Origin,
): Promise<StartedCommand> {
  requireCommandClient(client_id)
  if (code === undefined) throw invalid('"device_code" is missing.')
  const { store } = core
  const codeHash = core.hasher.hash(code)
  const subject = `device ${codeHash}`
  requireLoginRate(core, subject, origin.ipAddress)
  if (core.rates.take(`device poll|${codeHash}`, POLLS, store.now()) > 0) throw slowDown()
  const login = isLoginSecret('device', code) ? await store.commandLogins.findByCode(codeHash) : undefined
  const isOpen = login?.kind === 'device' && login.state !== 'used' && login.expiresAt > store.now()
  if (isOpen && login.state === 'waiting') throw await pollAgain(core, login)
  if (isOpen && login.state === 'denied') throw denied()
  const started = isOpen ? await startCommandSession(core, login, origin) : 'used'
  if (started === 'over') throw denied()
  if (started !== 'used') return started
  countFailure(core, subject, { caller: undefined, origin }, 'device_code')
  throw new OAuthProblem('expired_token', 'The code is unknown, has expired, or was used: log in again.')
}

/** The interval grows by five seconds each time that it was not kept (RFC 8628 §3.5). */
async function pollAgain({ store }: CommandParts, login: CommandLogin): Promise<OAuthProblem> {
  const { polledAt, pollMs } = login
  const [now, interval] = [store.now(), pollMs ?? DEVICE_POLL_MS]
  const isEarly = polledAt !== null && now < polledAt + interval - EARLY_MS
  const next = isEarly ? interval + DEVICE_POLL_MS : interval
  const outcome = await store.commit([store.commandLogins.recordPoll(login, { now, pollMs: next })])
  if (isEarly || !outcome.done) return slowDown()
  return new OAuthProblem('authorization_pending', 'Nobody has allowed or denied this login yet.')
}

const slowDown = () => new OAuthProblem('slow_down', 'Ask less often: wait five seconds longer each time.')
const denied = () =>
  new OAuthProblem('access_denied', 'This login was denied, or the session that allowed it ended.')
