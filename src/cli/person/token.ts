import type { Client } from '../../client/client.ts'
import { unexpectedReply } from '../frame/failure.ts'
import { OPERATOR_TOKEN } from '../session/session.ts'

export const CLIENT_ID = 'mayfly-cli'

/** No login of a person lasts longer. */
const LONGEST_S = 24 * 3_600

export interface OperatorToken {
  readonly token: string
  /** Epoch milliseconds, by the clock of this machine. */
  readonly expiresAt: number
}

/** Asks the token endpoint. Throws what the client throws, and `CliError` for an answer that is no operator's token. */
export async function askToken(
  client: Client,
  grant: Readonly<Record<string, string>>,
  { now, signal }: { readonly now: () => number; readonly signal: AbortSignal },
): Promise<OperatorToken> {
  const form = async () => ({ ...grant, client_id: CLIENT_ID })
  const askedAt = now()
  const { body } = await client.call<{ access_token?: unknown; expires_in?: unknown } | undefined>({
    method: 'POST',
    path: '/oauth/token',
    form,
    signal,
  })
  const { access_token: token, expires_in: lifeS } = body ?? {}
  if (typeof token !== 'string' || !OPERATOR_TOKEN.test(token) || !isSeconds(lifeS, LONGEST_S))
    throw unexpectedReply()
  return { token, expiresAt: askedAt + lifeS * 1_000 }
}

/** Whole seconds, from 1 to `most`. */
export const isSeconds = (value: unknown, most: number): value is number =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most
