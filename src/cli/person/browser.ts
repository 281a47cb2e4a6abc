import { createHash, randomBytes } from 'node:crypto'
import { unlessAborted } from '../../domain/abort.ts'
import { CliError, EXIT } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { hostName } from './host-name.ts'
import { type Listener, listen } from './listener.ts'
import type { Offer } from './offer.ts'
import { openBrowser } from './open-browser.ts'
import { askToken, CLIENT_ID, type OperatorToken } from './token.ts'

const PATIENCE_MS = 10 * 60_000

/** 256 bits that are good in an address. */
const random = () => randomBytes(32).toString('base64url')

/**
 * Logs in with the browser of this machine: a redirect to a port of the loopback (RFC 8252) with PKCE (RFC 7636). Throws
 * `CliError` if it is denied, or takes more than ten minutes.
 */
export async function logInByBrowser(context: Context, offer: Offer): Promise<OperatorToken> {
  const verifier = random()
  const state = random()
  const listener = await listen(state)
  try {
    await show(context, addressOf(offer, { state, verifier, redirectUri: listener.redirectUri }))
    const answer = await whileWaiting(context, 'Waiting for your browser', waitFor(context, listener))
    const grant = {
      grant_type: 'authorization_code',
      code: codeIn(answer, offer.issuer),
      redirect_uri: listener.redirectUri,
      code_verifier: verifier,
    }
    return await askToken(offer.client, grant, context)
  } finally {
    listener.close()
  }
}

function addressOf(
  { authorizationEndpoint }: Offer,
  { state, verifier, redirectUri }: Readonly<Record<'state' | 'verifier' | 'redirectUri', string>>,
): string {
  const url = new URL(authorizationEndpoint)
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: CLIENT_ID,
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state,
    host: hostName(),
  }).toString()
  return url.href
}

async function show(context: Context, address: string): Promise<void> {
  const isOpen = await openBrowser(context, address)
  context.out.note(
    isOpen
      ? `Allow this login in your browser. If it does not open, go to this address on this machine:\n\n${address}\n`
      : `Open this address in a browser on this machine. On another machine, use \`mayfly login --device\` instead.\n\n${address}\n`,
  )
}

async function waitFor({ signal }: Context, { answer }: Listener): Promise<ReadonlyMap<string, string>> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(tooLate()), PATIENCE_MS)
  try {
    return await unlessAborted(Promise.race([answer, late.promise]), signal)
  } finally {
    clearTimeout(timer)
  }
}

/** Throws `CliError` for an answer of another server (RFC 9207), a refusal, and what is no answer. */
function codeIn(answer: ReadonlyMap<string, string>, issuer: string): string {
  if (answer.get('iss') !== issuer)
    throw new CliError('issuer_differs', 'The answer is of another server, so nothing was sent to it.', {
      exit: EXIT.refused,
      hint: `Log in again, and allow it only on the pages of ${issuer}.`,
    })
  const code = answer.get('code') ?? ''
  if (!answer.has('error') && /^[\x21-\x7e]{1,512}$/.test(code)) return code
  throw answer.get('error') === 'access_denied' ? denied() : refused(answer.get('error'))
}

export const denied = () =>
  new CliError('access_denied', 'The login was not allowed.', {
    exit: EXIT.refused,
    hint: 'Nothing was changed.',
  })

function refused(error = ''): CliError {
  const code = /^[a-z_]{1,64}$/.test(error) ? ` (${error})` : ''
  return new CliError('login_refused', `The server refused the login${code}.`, {
    exit: EXIT.refused,
    hint: 'Try again. If the problem persists, tell the administrator.',
  })
}

const tooLate = () =>
  new CliError('login_expired', 'Nobody allowed the login within 10 minutes.', {
    exit: EXIT.unauthenticated,
    hint: 'Run the command again.',
  })
