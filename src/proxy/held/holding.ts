import type { Use } from '../../domain/use.ts'
import type { Held, Live, Unusable } from '../types.ts'
import type { RunCuts } from './cuts.ts'
import type { Issued } from './issue.ts'
import type { SignOfLife } from './sign-of-life.ts'

/** One credential of the run over its renewals. */
export interface Holding extends Held {
  /** As it was issued first. */
  readonly first: Issued
  /** The one that new requests get; undefined once it has ended. */
  current(): Issued | undefined
  /** It takes the place of the current one, which stays until it expires. */
  renew(next: Issued): void
  /** What the server says at this time: these live. */
  compare(living: ReadonlySet<string>, at: number): void
  /** Ends what has expired. */
  expire(): void
  /** It was revoked, and with it all that was issued in its place. Returns the ids of those that may still live. */
  end(why: string): string[]
  readonly isEnded: boolean
  /** Whether the server has shown this one, so that it would also show its end. */
  isSeen(id: string): boolean
}

export interface HoldingOptions {
  readonly name: string
  readonly type: string
  readonly first: Issued
  readonly placeholders: ReadonlyMap<string, string>
  readonly cuts: Pick<RunCuts, 'cut'>
  readonly sign: Pick<SignOfLife, 'isSure'>
  /** Why nothing may be served for now, for another reason. */
  whyUnsure(): string | undefined
  /** Why nothing of the run may be used any more; undefined while it lives. */
  whyOver(): string | undefined
  /** The server ended it before its time. */
  revoked(holding: Holding): void
  /** It ended so near to its time that only the server knows why. */
  unclear(holding: Holding, id: string): void
}

interface Copy {
  readonly issued: Issued
  /** Both by the clock of the server. */
  readonly createdAt: number
  readonly expiresAt: number
  isSeen: boolean
}

/** The server shows a credential in its states at most so long after its creation. */
const SHOWN_WITHIN_MS = 5_000
/** Less than this before its time it may have expired: what the server says of one time, it looked up a moment later. */
const NEAR_MS = 5_000

const unusable = (state: Unusable['state'], why: string): Unusable => ({ state, why })
const UNSURE = unusable(
  'unsure',
  'The server has not been heard for too long, so the credential may have ended.',
)
const EXPIRED = unusable('unsure', 'The credential has expired, and no new one could be had yet.')

export function createHolding(options: HoldingOptions): Holding {
  const { name, type, first, placeholders, cuts, sign, whyOver, whyUnsure, revoked, unclear } = options
  let copies: Copy[] = [copyOf(first)]
  let uses: readonly Use[] = first.uses
  let ended: Unusable | undefined

  const drop = (copy: Copy) => {
    copies = copies.filter((one) => one !== copy)
    cuts.cut(copy.issued.live.credentialId)
  }
  /** `at`: by the clock of the server, which says what expires there. It may have been set. */
  const gone = (copy: Copy, at: number) => {
    drop(copy)
    if (copy.expiresAt - at > NEAR_MS) revoked(holding)
    else unclear(holding, copy.issued.live.credentialId)
  }
  const now = (): Live | Unusable => {
    if (ended !== undefined) return ended
    const over = whyOver()
    if (over !== undefined) return unusable('ended', over)
    if (!sign.isSure()) return UNSURE
    const unsure = whyUnsure()
    if (unsure !== undefined) return unusable('unsure', unsure)
    const issued = copies.at(-1)?.issued
    return issued === undefined || isExpired(issued) ? EXPIRED : issued.live
  }
  const holding: Holding = {
    name,
    backend: first.credential.backend,
    type,
    placeholders,
    first,
    get uses() {
      return uses
    },
    get isEnded() {
      return ended !== undefined
    },
    now,
    current: () => copies.at(-1)?.issued,
    renew: (next) => {
      copies.push(copyOf(next))
      uses = next.uses
    },
    compare: (living, at) => {
      for (const copy of [...copies]) {
        if (ended !== undefined) return
        if (living.has(copy.issued.live.credentialId)) copy.isSeen = true
        else if (copy.isSeen || copy.createdAt + SHOWN_WITHIN_MS < at) gone(copy, at)
      }
    },
    expire: () => {
      for (const copy of [...copies]) if (isExpired(copy.issued)) drop(copy)
    },
    end: (why) => {
      ended ??= unusable('ended', why)
      const left = copies.map(({ issued }) => issued.live.credentialId)
      for (const copy of [...copies]) drop(copy)
      return left
    },
    isSeen: (id) => copies.some(({ issued, isSeen }) => isSeen && issued.live.credentialId === id),
  }
  return holding
}

function copyOf(issued: Issued): Copy {
  const { created_at, expires_at } = issued.credential
  return { issued, createdAt: Date.parse(created_at), expiresAt: Date.parse(expires_at), isSeen: false }
}

const isExpired = ({ lifeMs, age }: Issued) => age() >= lifeMs
