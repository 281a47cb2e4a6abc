import { isIP, type LookupFunction } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { unlessAborted } from '../domain/abort.ts'
import { createLookUp, type Found, type LookUp, NameNotFound } from './look-up.ts'

/** The addresses of names, for every connection of the server. */
export interface Resolver {
  /** At least one, IPv4 first. They are not checked. Throws where the name has none, or nobody says. */
  addresses(hostname: string): Promise<readonly string[]>
  /** The same for `net.connect`. */
  readonly lookup: LookupFunction
}

export interface ResolverParts {
  readonly lookUp?: LookUp
  /** In ms, never set back. */
  readonly now?: () => number
  /** Names that may be asked for at the same time. */
  readonly most?: number
}

/** An answer is kept for its own time, within these bounds. */
const SHORTEST_MS = 1_000
const LONGEST_MS = 30_000
/** A look-up that takes longer has failed: an upstream call has 10 s in all. */
const LOOK_UP_MS = 6_000
/** After that, waiting callers get the addresses that the name had last. */
const PATIENCE_MS = 250
/** Until a name is asked for again that could not be resolved. */
const PAUSE_MS = 1_000
/** Addresses are good for so long while the name server is silent (RFC 8767 §5: one to three days). */
const STALE_MS = 86_400_000
const MOST_UNDER_WAY = 128
const MOST_NAMES = 2_000

interface Known {
  readonly addresses: readonly string[]
  readonly freshUntil: number
  readonly staleUntil: number
}

interface Name {
  known?: Known | undefined
  failed?: { readonly error: unknown; readonly until: number } | undefined
  underWay?: { readonly outcome: Promise<readonly string[]>; readonly since: number } | undefined
}

/**
 * Asks for each name once at a time, however many wait for it, and keeps the answer shortly. While the name server is silent, the
 * last addresses stay good; where it says that the name is gone, they do not.
 */
export function createResolver(parts: ResolverParts = {}): Resolver {
  const { lookUp = createLookUp(), now = () => performance.now(), most = MOST_UNDER_WAY } = parts
  const nameOf = createNames()
  let underWay = 0

  function begin(name: Name, hostname: string): NonNullable<Name['underWay']> {
    if (underWay >= most) throw new Error('too many names are being resolved')
    underWay += 1
    const outcome = withinTime(lookUp, hostname)
      .then(
        (found) => remember(name, found),
        (error: unknown) => forget(name, error),
      )
      .finally(() => {
        underWay -= 1
        name.underWay = undefined
      })
    // The waiting caller may have gone.
    outcome.catch(() => undefined)
    name.underWay = { outcome, since: now() }
    return name.underWay
  }

  function remember(name: Name, { addresses, ttlMs }: Found): readonly string[] {
    const at = now()
    const freshUntil = at + Math.min(LONGEST_MS, Math.max(SHORTEST_MS, ttlMs))
    name.known = { addresses, freshUntil, staleUntil: at + STALE_MS }
    name.failed = undefined
    return addresses
  }

  function forget(name: Name, error: unknown): never {
    if (error instanceof NameNotFound) name.known = undefined
    name.failed = { error, until: now() + PAUSE_MS }
    throw error
  }

  async function addresses(hostname: string): Promise<readonly string[]> {
    const name = nameOf(hostname)
    const { known, failed } = name
    const at = now()
    if (known !== undefined && at < known.freshUntil) return known.addresses
    const last = known !== undefined && at < known.staleUntil ? known.addresses : undefined
    if (failed !== undefined && at < failed.until) {
      if (last === undefined) throw failed.error
      return last
    }
    if (last === undefined) return (name.underWay ?? begin(name, hostname)).outcome
    try {
      const { outcome, since } = name.underWay ?? begin(name, hostname)
      // A name server that failed the last time is asked while the caller goes on.
      const patience = failed === undefined ? since + PATIENCE_MS - at : 0
      return await Promise.race([outcome, delay(Math.max(0, patience), last, { ref: false })])
    } catch (error) {
      if (error instanceof NameNotFound) throw error
      return last
    }
  }

  return { addresses, lookup: lookupBy(addresses) }
}

/** Those that were used last. */
function createNames(): (hostname: string) => Name {
  const names = new Map<string, Name>()
  return (hostname) => {
    const key = hostname.toLowerCase()
    const name = names.get(key) ?? {}
    names.delete(key)
    names.set(key, name)
    const [oldest] = names.keys()
    if (names.size > MOST_NAMES && oldest !== undefined) names.delete(oldest)
    return name
  }
}

function lookupBy(addresses: Resolver['addresses']): LookupFunction {
  return (hostname, options, done) => {
    addresses(hostname).then(
      (found) => {
        const all = found.map((address) => ({ address, family: isIP(address) }))
        const [first] = all
        if (options.all === true) done(null, all)
        else done(null, first?.address ?? '', first?.family)
      },
      (cause: unknown) => {
        // The codes of the system's own look-up, by which callers know why.
        const code = cause instanceof NameNotFound ? 'ENOTFOUND' : 'EAI_AGAIN'
        done(Object.assign(new Error(`${code} ${hostname}`, { cause }), { code }), '', 0)
      },
    )
  }
}

async function withinTime(lookUp: LookUp, hostname: string): Promise<Found> {
  const signal = AbortSignal.timeout(LOOK_UP_MS)
  return unlessAborted(lookUp(hostname, signal), signal)
}
