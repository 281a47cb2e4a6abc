import { accessTokenOf } from '../../client/access-tokens.ts'
import type { Client } from '../../client/client.ts'
import type { Transport } from '../../client/transport.ts'
import { parseJson } from '../../domain/formats/json.ts'
import { CliError, EXIT } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { waitForLock } from '../session/file-lock.ts'
import type { IdentityAuth } from './auth.ts'

/**
 * Makes sure that there is an access token. Commands of one job that start together share one login: a platform may hand
 * out one token for all of them, which is good once. Throws what the client throws.
 */
export async function logInOnce(
  context: Context,
  client: Pick<Client, 'token'>,
  auth: IdentityAuth,
): Promise<void> {
  const load = async () => {
    const token = await auth.tokens.load()
    return { token, isFresh: token !== undefined && token.renewAt > context.now() }
  }
  if ((await load()).isFresh) return
  const release = await waitForLock(`${auth.file}.lock`, context.signal)
  try {
    const { token, isFresh } = await load()
    if (isFresh) return
    const askedAt = context.now()
    await auth.tokens.save(accessTokenOf(await client.token(), askedAt, token?.requests))
  } finally {
    release?.()
  }
}

/**
 * Has refusals of the token endpoint say which token it was: the transport throws `CliError`. The server says who must act;
 * the reason is in its audit alone.
 */
export function withRefusals(
  server: string,
  { title, audience }: IdentityAuth,
  transport: Transport,
): Transport {
  return async (request) => {
    const reply = await transport(request)
    if (reply.status !== 400 || !request.url.endsWith('/oauth/token')) return reply
    const { error, error_description: said } = (parseJson(reply.text) ?? {}) as Record<string, unknown>
    if (error === 'unsupported_grant_type')
      throw refused(`${server} does not take the identity of a workload.`, OLDER)
    if (error !== 'invalid_grant') return reply
    const why = typeof said === 'string' ? ` ${said}` : ''
    throw refused(`${server} refused the token of ${title} for the audience ${audience}.${why}`)
  }
}

const OLDER = 'Its version is older, or it is not a Mayfly server: use `mayfly login` or `mayfly enroll`.'

const refused = (message: string, hint?: string) =>
  new CliError('identity_refused', message, { exit: EXIT.unauthenticated, hint })
