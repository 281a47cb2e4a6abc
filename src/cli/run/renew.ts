import { pause } from '../../client/abort.ts'
import { CliError } from '../frame/failure.ts'
import { type Delivery, isRenewable } from './deliver.ts'
import type { Issuance, Ledger } from './issued-credentials.ts'

export interface RenewOptions {
  readonly ledger: Pick<Ledger, 'obtain' | 'revoke'>
  /** Puts a new one in the place of the old one. */
  place(delivery: Delivery, issuance: Issuance): Promise<void>
  now(): number
  note(text: string): void
}

const RENEW_AT = 2 / 3
/** Who has just read the old one may still use it. */
const OVERLAP_MS = 5_000
const OVERLAP_SHARE = 1 / 12
const LONGEST_RETRY_MS = 30_000
/** Once the command has nothing that is good any more. */
const RETRY_ENDED_MS = 5_000
/** The clock is looked at again so often: a machine that slept does not count its sleep. */
const LOOK_MS = 20_000

/**
 * Until the signal: renews what is in files, and says of what is in variables when it has ended. Never throws.
 */
export async function keepAlive(
  deliveries: readonly Delivery[],
  options: RenewOptions,
  signal: AbortSignal,
): Promise<void> {
  const watch = (delivery: Delivery) =>
    isRenewable(delivery.wanted) ? renew(delivery, options, signal) : tellEnd(delivery, options, signal)
  // What ends a wait is the end of the child.
  await Promise.allSettled(deliveries.map(watch))
}

async function tellEnd(
  { wanted, issuance }: Delivery,
  { now, note }: RenewOptions,
  signal: AbortSignal,
): Promise<void> {
  await until(issuance.endsAt, now, signal)
  note(
    `mayfly: the credential of ${wanted.name} has ended, and what is in variables cannot be renewed. ` +
      'Give it a longer ttl, or give it to the command in files.',
  )
}

async function renew(delivery: Delivery, options: RenewOptions, signal: AbortSignal): Promise<void> {
  const { ledger, now } = options
  let current = delivery.issuance
  while (!signal.aborted) {
    const life = current.endsAt - current.askedAt
    await until(current.askedAt + life * RENEW_AT, now, signal)
    const next = await obtainInTime(delivery, current, options, signal)
    await pause(Math.min(OVERLAP_MS, life * OVERLAP_SHARE), signal)
    // Where it fails it is tried again at the end of the run, and it ends soon in any case.
    await ledger.revoke(current.credential.id)
    current = next
  }
}

/** Tries until it works, less often as time goes by; says once that it does not, and once that the old one has ended. */
async function obtainInTime(
  delivery: Delivery,
  current: Issuance,
  options: RenewOptions,
  signal: AbortSignal,
): Promise<Issuance> {
  const { ledger, now, note, place } = options
  let told: 'nothing' | 'failing' | 'ended' = 'nothing'
  for (;;) {
    signal.throwIfAborted()
    try {
      const next = await ledger.obtain(delivery.wanted.request)
      signal.throwIfAborted()
      await placeOrRevoke(next)
      if (told !== 'nothing') note(`mayfly: the credential of ${delivery.wanted.name} is renewed again.`)
      return next
    } catch (error) {
      signal.throwIfAborted()
      const left = current.endsAt - now()
      const news = left <= 0 ? 'ended' : 'failing'
      if (told !== news) note(notRenewed(delivery.wanted.name, news, error))
      told = news
      const wait = Math.min(Math.max(left / 4, 500), LONGEST_RETRY_MS)
      await pause(left <= 0 ? RETRY_ENDED_MS : wait, signal)
    }
  }

  async function placeOrRevoke(next: Issuance): Promise<void> {
    try {
      await place(delivery, next)
    } catch (error) {
      await ledger.revoke(next.credential.id)
      throw error
    }
  }
}

function notRenewed(name: string, news: 'failing' | 'ended', error: unknown): string {
  const known = error instanceof CliError || (error as { code?: unknown }).code !== undefined
  const named = error instanceof Error && ['MayflyError', 'UnreachableError'].includes(error.name)
  const why = (known || named) && error instanceof Error ? ` ${error.message}` : ''
  return news === 'ended'
    ? `mayfly: the credential of ${name} has ended and could not be renewed.${why} It is tried again.`
    : `mayfly: the credential of ${name} could not be renewed yet.${why} It is tried again.`
}

async function until(when: number, now: () => number, signal: AbortSignal): Promise<void> {
  for (let left = when - now(); left > 0; left = when - now()) await pause(Math.min(left, LOOK_MS), signal)
}
