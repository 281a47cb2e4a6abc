import { pause } from '../../../src/client/abort.ts'
import { fetchTransport, type TransportReply } from '../../../src/client/transport.ts'
import { parseJson } from '../../../src/domain/formats/json.ts'
import { isLoopbackHost } from '../../../src/domain/network/loopback.ts'
import { ActionError } from './runner.ts'

type Env = Readonly<Record<string, string | undefined>>

const TRIES = 4
const TIMEOUT_MS = 10_000
const PAUSE_MS = 500

/**
 * A new token that says which job this is, for this audience
 * (docs.github.com/en/actions/reference/security/oidc, "Methods for requesting the OIDC token"). Throws `ActionError`.
 */
export async function requestIdToken(env: Env, audience: string, signal?: AbortSignal): Promise<string> {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: address = '', ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer = '' } = env
  if (address === '' || bearer === '')
    throw new ActionError(
      'This job may not ask GitHub for a token. Give it `permissions: { id-token: write }`. Workflows that a fork starts never get one.',
    )
  const url = URL.canParse(address) ? new URL(address) : undefined
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname))
  if (url === undefined || !isSafe)
    throw new ActionError('ACTIONS_ID_TOKEN_REQUEST_URL is not an https address.')
  url.searchParams.set('audience', audience)
  const headers = { authorization: `Bearer ${bearer}`, accept: 'application/json' }
  const { status, text } = await ask(url.href, headers, signal)
  const { value } = (status === 200 ? (parseJson(text) ?? {}) : {}) as { value?: unknown }
  if (typeof value === 'string' && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(value)) return value
  throw new ActionError(
    `GitHub gave no token for the audience ${audience}: it answered with status ${status}.`,
  )
}

/** Asks again while GitHub is busy or away. */
async function ask(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal | undefined,
): Promise<TransportReply> {
  for (let tried = 1; ; tried += 1) {
    try {
      const reply = await fetchTransport({ method: 'GET', url, headers, signal, timeoutMs: TIMEOUT_MS })
      if ((reply.status !== 429 && reply.status < 500) || tried === TRIES) return reply
    } catch (error) {
      signal?.throwIfAborted()
      if (tried === TRIES)
        throw new ActionError('GitHub gave no token: it cannot be reached.', { cause: error })
    }
    await pause(PAUSE_MS * tried, signal)
  }
}
