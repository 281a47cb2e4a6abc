import { pause } from '../../client/abort.ts'
import { MayflyError, UnreachableError } from '../../client/errors.ts'
import { CliError, EXIT, unexpectedReply } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { denied } from './browser.ts'
import { hostName } from './host-name.ts'
import { type Offer, pageOf } from './offer.ts'
import { askToken, CLIENT_ID, isSeconds, type OperatorToken } from './token.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const LONGEST_CODE_S = 3_600
/** RFC 8628, §3.2 and §3.5. */
const USUAL_INTERVAL_S = 5
const SLOWER_MS = 5_000
const LONGEST_INTERVAL_S = 60

interface Codes {
  readonly deviceCode: string
  readonly userCode: string
  readonly page: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
  readonly intervalMs: number
}

/**
 * Logs in with a code that the person types in a browser anywhere (RFC 8628). Throws `CliError` if it is denied or comes
 * too late.
 */
export async function logInByDevice(context: Context, offer: Offer): Promise<OperatorToken> {
  const host = hostName()
  const codes = await askCodes(context, offer, host)
  const minutes = Math.ceil((codes.expiresAt - context.now()) / 60_000)
  context.out.note(
    [
      'Open this page in a browser, on any machine:',
      codes.page,
      `Log in there, and type this code. It works once, and ends in ${minutes} min:`,
      `    ${codes.userCode}`,
      `Allow only what you have begun yourself: this command runs on ${host}.`,
    ].join('\n\n'),
  )
  return whileWaiting(context, 'Waiting until you allow it', poll(context, offer, codes))
}

/** Everything in the answer is checked: it goes to a terminal, and steers what follows. */
async function askCodes(context: Context, { client, issuer }: Offer, host: string): Promise<Codes> {
  const askedAt = context.now()
  const { body } = await client.call<Readonly<Record<string, unknown>> | undefined>({
    method: 'POST',
    path: '/oauth/device_authorization',
    form: async () => ({ client_id: CLIENT_ID, host }),
  })
  const { device_code: deviceCode, user_code: userCode, verification_uri: page } = body ?? {}
  const { expires_in: lifeS, interval = USUAL_INTERVAL_S } = body ?? {}
  if (
    typeof deviceCode !== 'string' ||
    !/^[\x21-\x7e]{1,512}$/.test(deviceCode) ||
    typeof userCode !== 'string' ||
    !/^[A-Z0-9]{4}-[A-Z0-9]{4}$/.test(userCode) ||
    !isSeconds(lifeS, LONGEST_CODE_S) ||
    !isSeconds(interval, LONGEST_INTERVAL_S)
  )
    throw unexpectedReply()
  const expiresAt = askedAt + lifeS * 1_000
  return { deviceCode, userCode, page: pageOf(page, issuer), expiresAt, intervalMs: interval * 1_000 }
}

async function poll(
  context: Context,
  { client }: Offer,
  { deviceCode, expiresAt, ...codes }: Codes,
): Promise<OperatorToken> {
  const grant = { grant_type: GRANT, device_code: deviceCode }
  let { intervalMs } = codes
  let waitMs = intervalMs
  let isAway = false
  for (;;) {
    const leftMs = expiresAt - context.now()
    if (leftMs <= 0) throw tooLate()
    await pause(Math.min(waitMs, leftMs), context.signal)
    try {
      return await askToken(client, grant, context)
    } catch (error) {
      const next = nextOf(error)
      if (next === 'slower') intervalMs += SLOWER_MS
      if (next === 'away' && !isAway)
        context.out.note(`${(error as Error).message} The command goes on asking until the code ends.`)
      isAway = next === 'away'
      // RFC 8628, §3.5: less often, each time that nobody answers.
      waitMs = isAway ? Math.min(waitMs * 2, LONGEST_INTERVAL_S * 1_000) : intervalMs
    }
  }
}

/** What an error of the token endpoint says to do. Throws those that end it. */
function nextOf(error: unknown): 'later' | 'slower' | 'away' {
  if (error instanceof UnreachableError) return 'away'
  if (!(error instanceof MayflyError)) throw error
  if (error.status >= 500 || error.status === 429) return 'away'
  switch (error.code as string) {
    case 'authorization_pending':
      return 'later'
    case 'slow_down':
      return 'slower'
    case 'access_denied':
      throw denied()
    case 'expired_token':
      throw tooLate()
    default:
      throw error
  }
}

const tooLate = () =>
  new CliError('login_expired', 'Nobody typed the code in time.', {
    exit: EXIT.unauthenticated,
    hint: 'Run the command again for a new one.',
  })
