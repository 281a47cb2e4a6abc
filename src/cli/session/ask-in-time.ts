import type { Client } from '../../client/client.ts'
import { CliError, EXIT } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { clientFor } from './open.ts'
import type { Target } from './session.ts'

/** Whoever ends a login waits no longer: it is removed from this machine in any case. */
const PATIENCE_MS = 10_000

/** Asks the server with this token. Throws what `ask` throws, and `CliError` once ten seconds have passed. */
export async function askInTime(
  context: Context,
  target: Target,
  token: string,
  ask: (client: Client) => Promise<unknown>,
): Promise<void> {
  const late = new CliError('unreachable_timeout', 'The server did not answer in time.', {
    exit: EXIT.unreachable,
  })
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(late), PATIENCE_MS)
  const signal = AbortSignal.any([context.signal, stop.signal])
  try {
    await ask(await clientFor({ ...context, signal }, target, { kind: 'bearer', token }))
  } finally {
    clearTimeout(timer)
  }
}
