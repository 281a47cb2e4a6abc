import type { Client } from '../../client/client.ts'
import { isAnswer, isFinalAnswer } from '../../client/issue-outcome.ts'
import { newKey } from '../../client/new-key.ts'
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

/**
 * Issues for this request, as often as it is called. An answer that was lost is asked for again under the same key: the server
 * repeats it, where another request would leave a second credential. Throws as the client does, and `ProxyFailure` for a reply that
 * makes no sense.
 */
export function issuerOf(
  client: Pick<Client, 'issue'>,
  request: IssueRequest,
  clocks: Clocks,
): (signal: AbortSignal) => Promise<Issued> {
  let lost: Asked | undefined
  const ask = async (signal: AbortSignal) => {
    const before = lost
    const asked = before ?? { key: newKey(), at: clocks.now(), age: stopwatch(clocks) }
    lost = asked
    try {
      const options = { signal, idempotencyKey: asked.key }
      const credential = await client.issue({ ...request, uses: true }, options)
      lost = undefined
      return { credential, asked }
    } catch (error) {
      if (before === undefined ? isAnswer(error) : isFinalAnswer(error)) lost = undefined
      throw error
    }
  }
  return async (signal) => {
    const first = await ask(signal)
    // One that has ended in the meantime is repeated without its secret.
    const { credential, asked } = first.credential.token === undefined ? await ask(signal) : first
    return readIssued(credential, asked)
  }
}

interface Asked {
  readonly key: string
  /** Epoch ms. */
  readonly at: number
  readonly age: () => number
}

function readIssued(credential: IssuedCredential, { at, age }: Asked): Issued {
  const { token, backend } = credential
  const lifeMs = Date.parse(credential.expires_at) - Date.parse(credential.created_at)
  if (token === undefined || !(lifeMs > 0)) throw useless(backend)
  const uses = readUses(backend, credential.uses)
  const { secrets, open } = splitCredential(credential, uses)
  return {
    credential: { ...credential, token },
    uses,
    live: { state: 'live', credentialId: credential.id, secrets, open, expiresAt: at + lifeMs },
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
