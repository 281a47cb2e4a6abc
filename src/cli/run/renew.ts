import { pause } from '../../client/abort.ts'
import { CliError } from '../frame/failure.ts'
import { type Delivery, fitsVariables, isRenewable } from './deliver.ts'
import type { Issuance, IssuedCredentials } from './issued-credentials.ts'

export interface RenewOptions {
  readonly issued: Pick<IssuedCredentials, 'obtain' | 'revoke'>
  /** Replaces the old credential's files. */
  place(delivery: Delivery, issuance: Issuance): Promise<unknown>
  now(): number
  note(text: string): void
}

const RENEW_AT = 2 / 3
/** However short the lives are that the server gives. */
const LEAST_INTERVAL_MS = 1_000
/** The old credential stays valid for a moment: the command may just have read it. */
const OVERLAP_MS = 5_000
const OVERLAP_SHARE = 1 / 12
const LONGEST_RETRY_MS = 30_000
/** Between attempts once the old credential has expired. */
const RETRY_ENDED_MS = 5_000
/** Check the clock this often: timers do not advance while the machine sleeps. */
const LOOK_MS = 20_000

/** Until the signal: renews credentials in files, and reports when one in variables expires. Never throws. */
export async function keepAlive(
  deliveries: readonly Delivery[],
  options: RenewOptions,
  signal: AbortSignal,
): Promise<void> {
  const watch = (delivery: Delivery) =>
    isRenewable(delivery.requested) ? renew(delivery, options, signal) : reportEnd(delivery, options, signal)
  // The signal ends every wait by rejecting it.
  await Promise.allSettled(deliveries.map(watch))
}

async function reportEnd(
  { requested, issuance }: Delivery,
  { now, note }: RenewOptions,
  signal: AbortSignal,
): Promise<void> {
  await until(issuance.endsAt, now, signal)
  note(
    `mayfly: the credential of ${requested.name} has expired, and variables of a running command cannot be renewed. ` +
      'Request a longer ttl, or deliver it in a file.',
  )
}

async function renew(delivery: Delivery, options: RenewOptions, signal: AbortSignal): Promise<void> {
  const { issued, now } = options
  let current = delivery.issuance
  while (!signal.aborted) {
    const life = current.endsAt - current.askedAt
    await until(current.askedAt + Math.max(life * RENEW_AT, LEAST_INTERVAL_MS), now, signal)
    const next = await obtainInTime(delivery, current, options, signal)
    if (next === undefined) return reportEnd({ ...delivery, issuance: current }, options, signal)
    await pause(Math.min(OVERLAP_MS, life * OVERLAP_SHARE), signal)
    // On failure the end of the run tries again, and the credential expires soon anyway.
    await issued.revoke(current.credential.id)
    current = next
  }
}

/**
 * Retries until it works, with growing pauses. Reports the first failure, and once that the old one has expired. Undefined: the
 * next credential needs other variables, so the command cannot use it.
 */
async function obtainInTime(
  delivery: Delivery,
  current: Issuance,
  options: RenewOptions,
  signal: AbortSignal,
): Promise<Issuance | undefined> {
  const { issued, now, note, place } = options
  let reported: 'nothing' | 'failing' | 'expired' = 'nothing'
  for (;;) {
    signal.throwIfAborted()
    try {
      const next = await issued.obtain(delivery.requested.request)
      signal.throwIfAborted()
      if (!fitsVariables(delivery, next.credential)) {
        await issued.revoke(next.credential.id)
        return undefined
      }
      await placeOrRevoke(next)
      if (reported !== 'nothing') note(`mayfly: renewed the credential of ${delivery.requested.name}.`)
      return next
    } catch (error) {
      signal.throwIfAborted()
      const left = current.endsAt - now()
      const news = left <= 0 ? 'expired' : 'failing'
      if (reported !== news) note(notRenewed(delivery.requested.name, news, error))
      reported = news
      const wait = Math.min(Math.max(left / 4, 500), LONGEST_RETRY_MS)
      await pause(left <= 0 ? RETRY_ENDED_MS : wait, signal)
    }
  }

  async function placeOrRevoke(next: Issuance): Promise<void> {
    try {
      await place(delivery, next)
    } catch (error) {
      await issued.revoke(next.credential.id)
      throw error
    }
  }
}

function notRenewed(name: string, news: 'failing' | 'expired', error: unknown): string {
  const known = error instanceof CliError || (error as { code?: unknown }).code !== undefined
  const named = error instanceof Error && ['MayflyError', 'UnreachableError'].includes(error.name)
  const why = (known || named) && error instanceof Error ? ` ${error.message}` : ''
  return news === 'expired'
    ? `mayfly: the credential of ${name} has expired and could not be renewed.${why} Retrying.`
    : `mayfly: the credential of ${name} could not be renewed yet.${why} Retrying.`
}

async function until(when: number, now: () => number, signal: AbortSignal): Promise<void> {
  for (let left = when - now(); left > 0; left = when - now()) await pause(Math.min(left, LOOK_MS), signal)
}
