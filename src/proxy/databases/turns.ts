import type { Visit } from './parts.ts'
import { Refusal } from './refusal.ts'
import { ServerError } from './server-error.ts'
import { upstreamRefusal } from './upstream.ts'

/** One step of the login for which the child has to send something. Throws `Refusal` if it takes too long. */
export async function withChild<T>(
  { times }: Pick<Visit, 'times'>,
  step: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(times.loginMs)
  try {
    return await step(signal)
  } catch (error) {
    if (signal.aborted && error === signal.reason) throw tooSlow()
    throw error
  }
}

const tooSlow = () => new Refusal('login_timeout', 'The client took too long to log in.', 'Connect again.')

/** The login at the server, all of it within its time. Whatever fails there becomes a `Refusal`; errors of the server itself pass. */
export async function withUpstream<T>(
  { times, use }: Pick<Visit, 'times' | 'use'>,
  step: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(times.upstreamMs)
  try {
    return await step(signal)
  } catch (error) {
    if (error instanceof ServerError) throw error
    throw upstreamRefusal(use.protocol, error, signal)
  }
}
