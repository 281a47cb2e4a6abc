import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { BackendError } from '../../../domain/backend-error.ts'
import { isLoopbackAddress } from '../../../domain/network/loopback.ts'
import { isSameAddress, resolveChecked } from '../../../egress/address.ts'
import { Failure } from '../failure.ts'
import type { TrafficParts } from '../parts.ts'

/** Where a request goes. */
export interface Destination {
  readonly scheme: 'https' | 'http'
  /** Canonical; an address of IPv6 in brackets. */
  readonly host: string
  readonly port: number
  /** PEM of the authorities to trust instead of the system's. */
  readonly ca?: string | undefined
  /** Who may listen on a loopback address without TLS. */
  readonly accounts?: readonly string[] | undefined
  /** Of a backend; `other` where no credential of the run is for it. */
  readonly is: 'local' | 'backend' | 'other'
}

type ReachParts = Pick<TrafficParts, 'resolver' | 'isLocal' | 'ownServer'>

/** Addresses that only one's own network has: never those of an authority that no backend names. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '198.18.0.0/15'].map(
  (text) => ipaddr.parseCIDR(text),
)

export function bareHost(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host
}

/** Every request asks; what comes of the same addresses is kept. */
const MOST_KEPT = 500
/** This machine may get another address. */
const OWN_MS = 1_000

/** Resolves once, and returns the address to connect to. Throws `Failure`. */
export function createReach({ resolver, isLocal, ownServer }: ReachParts) {
  const own = ownServer.map(splitHostPort)
  const checked = createKept<string>()
  const owned = createKept<{ readonly is: boolean; readonly until: number }>()
  const lookup: Lookup = async (name) => (isIP(name) === 0 ? resolver.addresses(name) : [name])

  async function check(host: string, is: Destination['is']): Promise<string> {
    try {
      const found = await lookup(host)
      const address = checked.get(`${is} ${host} ${found}`)
      return address ?? checked.keep(`${is} ${host} ${found}`, await checkFound(host, is, found))
    } catch (error) {
      if (error instanceof Failure) throw error
      const isForbidden = error instanceof BackendError && error.fault === 'misconfigured'
      throw new Failure(isForbidden ? 'address_not_allowed' : 'unreachable', { cause: error })
    }
  }

  /** `names`: of Mayfly, at the same port. */
  async function isOwn(names: readonly string[], address: string): Promise<boolean> {
    const found = await Promise.all(names.map((name) => lookup(name).catch(() => [])))
    const all = found.flat()
    const key = `${address} ${all}`
    const known = owned.get(key)
    if (known !== undefined && performance.now() < known.until) return known.is
    // Where it listens on this machine, no other address of this machine leads to it, either.
    const is = all.some((one) => isSameAddress(one, address)) || (isHere(address) && all.some(isHere))
    return owned.keep(key, { is, until: performance.now() + OWN_MS }).is
  }

  return async ({ host: text, port, is }: Destination): Promise<string> => {
    const host = bareHost(text)
    // Names are refused before anybody is asked for them.
    const names = own.filter((one) => one.port === port).map((one) => one.host)
    if (names.includes(host)) throw new Failure('own_server')
    const address = await check(host, is)
    if (names.length > 0 && (await isOwn(names, address))) throw new Failure('own_server')
    // On another machine than Mayfly's, the child could listen there.
    if (isLoopbackAddress(address) && !isLocal) throw new Failure('address_not_allowed')
    return address
  }
}

type Lookup = (name: string) => Promise<readonly string[]>

function createKept<T>() {
  const kept = new Map<string, T>()
  return {
    get: (key: string): T | undefined => kept.get(key),
    keep: (key: string, value: T): T => {
      if (kept.size >= MOST_KEPT) kept.clear()
      kept.set(key, value)
      return value
    },
  }
}

async function checkFound(host: string, is: Destination['is'], found: readonly string[]): Promise<string> {
  if (is === 'other' && found.some(isPrivate)) throw new Failure('address_not_allowed')
  return resolveChecked(host, { local: is === 'local', lookup: async () => found })
}

function isPrivate(address: string): boolean {
  if (isIP(address) === 0) return true
  const parsed = ipaddr.process(address.replace(/%.*$/, ''))
  return parsed.kind() === 'ipv4'
    ? PRIVATE.some((subnet) => parsed.match(subnet))
    : parsed.range() !== 'unicast' && !['rfc6052', '6to4'].includes(parsed.range())
}

function isHere(address: string): boolean {
  if (isLoopbackAddress(address)) return true
  return Object.values(networkInterfaces()).some((all) =>
    all?.some((one) => isSameAddress(one.address, address)),
  )
}

function splitHostPort(text: string): { readonly host: string; readonly port: number } {
  const at = text.lastIndexOf(':')
  return { host: bareHost(text.slice(0, at).toLowerCase()), port: Number(text.slice(at + 1)) }
}
