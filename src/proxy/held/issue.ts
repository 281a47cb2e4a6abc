import type { Client } from '../../client/client.ts'
import type { IssuedCredential, IssueRequest } from '../../client/wire.ts'
import { splitCredential } from '../../domain/secret-fields.ts'
import { type Clocks, stopwatch } from '../../domain/stopwatch.ts'
import type { Use } from '../../domain/use.ts'
import { ProxyFailure } from '../failure.ts'
import type { Live } from '../types.ts'
import { readUses } from './read-use.ts'

/** One credential as it was issued, and its life by our clocks. */
export interface Issued {
  readonly credential: IssuedCredential & { readonly token: string }
  readonly uses: readonly Use[]
  readonly live: Live
  readonly lifeMs: number
  /** Milliseconds since it was asked for: it began later, so it ends here before it ends on the server. */
  readonly age: () => number
}

/** Throws as the client does, and `ProxyFailure` for a reply that makes no sense. */
export async function issueFor(
  client: Pick<Client, 'issue'>,
  request: IssueRequest,
  clocks: Clocks,
  signal: AbortSignal,
): Promise<Issued> {
  const askedAt = clocks.now()
  const age = stopwatch(clocks)
  const credential = await client.issue({ ...request, uses: true }, { signal })
  const { token, backend } = credential
  const lifeMs = Date.parse(credential.expires_at) - Date.parse(credential.created_at)
  if (token === undefined || !(lifeMs > 0)) throw useless(backend)
  const uses = readUses(backend, credential.uses)
  const { secrets, open } = splitCredential(credential, uses)
  return {
    credential: { ...credential, token },
    uses,
    live: { state: 'live', credentialId: credential.id, secrets, open, expiresAt: askedAt + lifeMs },
    lifeMs,
    age,
  }
}

function useless(backend: string): ProxyFailure {
  return new ProxyFailure(
    'unexpected_reply',
    `The server sent a credential of ${backend} without its secret, or one that has expired.`,
    'Tell the administrator of the server.',
  )
}
