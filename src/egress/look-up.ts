import { Resolver, lookup as systemLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { hostname as ownHostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import ipaddr from 'ipaddr.js'
import { addressesInHosts, candidatesOf, searchOf, sourcesOf } from './name-files.ts'
import { readText } from './system-files.ts'

/** One look-up of a name, as `getaddrinfo` does it, but without a thread that waits for a silent name server. */

export interface Found {
  /** At least one; IPv4 first. */
  readonly addresses: readonly string[]
  /** How long the answer is true. */
  readonly ttlMs: number
}

/** Throws `NameNotFound`, any other error where nobody could say, and stops when `signal` fires. */
export type LookUp = (name: string, signal: AbortSignal) => Promise<Found>

/** All that were asked say that the name has no address. */
export class NameNotFound extends Error {
  override readonly name = 'NameNotFound'
}

export interface LookUpParts {
  /** Address and port of name servers, instead of those of `/etc/resolv.conf`. */
  readonly servers?: readonly string[]
  /** Returns the text of a file, or an empty one. */
  readonly read?: (path: string) => Promise<string>
  readonly platform?: NodeJS.Platform
  /** The resolver of the C library. */
  readonly system?: (name: string) => Promise<readonly string[]>
}

/** What is in a file is read again after this time. */
const FILE_TTL_MS = 5_000
/** The first question to a name server; the second one may take twice as long. */
const QUESTION_MS = 1_500
const TRIES = 2
/** For the IPv6 addresses, once those of IPv4 are there: some name servers never answer for them. */
const SECOND_FAMILY_MS = 1_000
/** The name servers have answered, and there is no such address. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

export function createLookUp(parts: LookUpParts = {}): LookUp {
  const { read = readText, platform = process.platform, system = askSystem } = parts
  const inTurn = createTurns()
  const bySystem = (name: string, signal: AbortSignal): Promise<Found> =>
    inTurn(signal, async () => foundOr(name, await system(name), FILE_TTL_MS))

  return async (name, signal) => {
    // Forms of an IPv4 address that the C library reads, too: "127.1", "0x7f.1".
    if (ipaddr.IPv4.isValid(name)) return foundOr(name, [ipaddr.IPv4.parse(name).toString()], FILE_TTL_MS)
    // Only Linux has all that it knows of names in files.
    if (platform !== 'linux') return bySystem(name, signal)
    const listed = addressesInHosts(await read('/etc/hosts'), name)
    if (listed.length > 0) return foundOr(name, listed, FILE_TTL_MS)
    if (/^(.*\.)?localhost\.?$/i.test(name)) return foundOr(name, ['127.0.0.1', '::1'], FILE_TTL_MS)
    const sources = sourcesOf(await read('/etc/nsswitch.conf'))
    if (!sources.dns) return bySystem(name, signal)
    const search = searchOf(await read('/etc/resolv.conf'), ownHostname())
    try {
      return await askDns(candidatesOf(name, search), parts.servers, signal)
    } catch (error) {
      const isAnswered = error instanceof NameNotFound || codeOf(error) === 'ECONNREFUSED'
      if (!sources.others || !isAnswered) throw error
      return bySystem(name, signal)
    }
  }
}

function foundOr(name: string, addresses: readonly string[], ttlMs: number): Found {
  if (addresses.length === 0) throw new NameNotFound(`${name} has no address`)
  const families = [4, 6].map((family) => addresses.filter((address) => isIP(address) === family))
  return { addresses: [...new Set(families.flat())], ttlMs }
}

async function askDns(
  candidates: readonly string[],
  servers: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<Found> {
  // A new one for each look-up: it reads resolv.conf again, and nobody else's questions end with it.
  const resolver = new Resolver({ timeout: QUESTION_MS, tries: TRIES })
  if (servers !== undefined) resolver.setServers([...servers])
  const stop = () => resolver.cancel()
  signal.addEventListener('abort', stop, { once: true })
  try {
    let failure: unknown
    for (const candidate of candidates) {
      signal.throwIfAborted()
      try {
        return await askBoth(resolver, candidate)
      } catch (error) {
        // As the C library: a server that cannot say leaves the other domains to ask for, a silent one does not.
        if (!(error instanceof NameNotFound) && codeOf(error) !== 'ESERVFAIL') throw error
        failure = failure === undefined || failure instanceof NameNotFound ? error : failure
      }
    }
    throw failure
  } finally {
    signal.removeEventListener('abort', stop)
    // The question for the other family may be under way still.
    resolver.cancel()
  }
}

interface Answer {
  readonly records: readonly { readonly address: string; readonly ttl: number }[]
  readonly failure?: unknown
}

async function askBoth(resolver: Resolver, name: string): Promise<Found> {
  const ask = (answer: Promise<Answer['records']>): Promise<Answer> =>
    answer.then(
      (records) => ({ records }),
      (failure: unknown) => ({ records: [], failure }),
    )
  const asked6 = ask(resolver.resolve6(name, { ttl: true }))
  const v4 = await ask(resolver.resolve4(name, { ttl: true }))
  const late = v4.records.length === 0 ? [] : [delay(SECOND_FAMILY_MS, { records: [] }, { ref: false })]
  const v6: Answer = await Promise.race([asked6, ...late])
  const records = [...v4.records, ...v6.records]
  const unanswered = [v4, v6].find(({ failure }) => failure !== undefined && !ABSENT.has(codeOf(failure)))
  if (records.length === 0 && unanswered !== undefined) throw unanswered.failure
  const ttlMs = 1_000 * Math.min(...records.map(({ ttl }) => ttl))
  return foundOr(
    name,
    records.map(({ address }) => address),
    ttlMs,
  )
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** One after another: a look-up of the C library takes a thread for as long as it waits, and cannot be stopped. */
function createTurns(): <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (signal, work) => {
    const turn = last.then(() => {
      signal.throwIfAborted()
      return work()
    })
    last = turn.catch(() => undefined)
    return turn
  }
}

async function askSystem(name: string): Promise<readonly string[]> {
  try {
    return (await systemLookup(name, { all: true })).map(({ address }) => address)
  } catch (error) {
    if (ABSENT.has(codeOf(error))) return []
    throw error
  }
}
