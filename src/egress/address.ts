import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { misconfigured, unavailable } from '../domain/backend-error.ts'

/** The addresses of a name, the best one first. */
export type AddressLookup = (hostname: string) => Promise<readonly string[]>

const subnets = (...texts: string[]) => texts.map((text) => ipaddr.parseCIDR(text))

/**
 * Never an upstream, marked local or not: metadata of AWS, Azure, Google, Alibaba and Oracle (also for containers and
 * pods), "this host", multicast, broadcast. No upstream has a Teredo (RFC 4380) or local-use NAT64 (RFC 8215) address, in
 * which an IPv4 address is hidden.
 */
const NEVER = subnets(
  ...['169.254.169.254/32', '169.254.170.2/32', '169.254.170.23/32', '168.63.129.16/32', '192.0.0.192/32'],
  ...[
    '100.100.100.200/32',
    'fd00:ec2::23/128',
    'fd00:ec2::254/128',
    'fd20:ce::254/128',
    'fe80::a9fe:a9fe/128',
  ],
  ...['0.0.0.0/8', '224.0.0.0/4', '240.0.0.0/4', '::/128', 'ff00::/8', '2001::/32', '64:ff9b:1::/48'],
)
/** Upstreams only when marked local. RFC 1918 addresses are not listed: upstreams are often inside. */
const LOCAL = subnets(...['127.0.0.0/8', '169.254.0.0/16', '::1/128', 'fe80::/10', 'fec0::/10', 'fc00::/7'])

export interface AddressRules {
  readonly local: boolean
  /** Preferred, while the name has it. */
  readonly held?: string | undefined
  readonly lookup: AddressLookup
}

/**
 * The address to connect to. One forbidden address among several refuses them all: a name that answers with both kinds is an
 * attack. Throws `BackendError`.
 */
export async function resolveChecked(
  hostname: string,
  { local, held, lookup }: AddressRules,
): Promise<string> {
  const name = hostname.replace(/^\[(.*)\]$/, '$1')
  const found = isIP(name) === 0 ? await lookUp(name, lookup) : [name]
  const first = found[0]
  if (first === undefined)
    throw unavailable('The host name of the upstream has no address.', {
      reason: 'unreachable',
    })
  for (const address of found) {
    if (!isPermitted(address, local)) {
      throw misconfigured(refusal(local), { detail: `refused address ${address}` })
    }
  }
  return held !== undefined && found.some((address) => isSameAddress(address, held)) ? held : first
}

/** Whatever form they are written in. */
export function isSameAddress(one: string, other: string): boolean {
  const [first, second] = [one, other].map((address) =>
    ipaddr.process(address.replace(/%.*$/, '')).toString(),
  )
  return first === second
}

async function lookUp(name: string, lookup: AddressLookup): Promise<readonly string[]> {
  try {
    return await lookup(name)
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : 'unknown'
    throw unavailable('The host name of the upstream cannot be resolved.', {
      detail,
      cause,
      reason: 'unreachable',
    })
  }
}

function refusal(local: boolean): string {
  return local
    ? 'The upstream has an address that Mayfly never connects to (metadata, unspecified, multicast).'
    : 'The upstream has a loopback, link-local or unique-local address; if that is intended, mark the backend "local".'
}

/** Checks every IPv4 address that an IPv6 address embeds as well. */
export function isPermitted(address: string, local: boolean): boolean {
  if (isIP(address) === 0) return false
  const parsed = ipaddr.parse(address.replace(/%.*$/, ''))
  return [parsed, ...embeddedIpv4(parsed)].every(
    (one) => !isAmong(NEVER, one) && (local || !isAmong(LOCAL, one)),
  )
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

function isAmong(list: ReturnType<typeof subnets>, address: Address): boolean {
  return list.some((subnet) => isIn(subnet, address))
}

function isIn([network, bits]: [Address, number], address: Address): boolean {
  return network.kind() === address.kind() && address.match(network, bits)
}

/** IPv6 ranges that embed an IPv4 address, and the 16-bit group at which it starts. */
const EMBEDDING = [
  { range: ipaddr.parseCIDR('::/96'), at: 6 }, // IPv4-compatible (RFC 4291 §2.5.5.1)
  { range: ipaddr.parseCIDR('::ffff:0:0/96'), at: 6 }, // IPv4-mapped
  { range: ipaddr.parseCIDR('::ffff:0:0:0/96'), at: 6 }, // IPv4-translated (RFC 2765)
  { range: ipaddr.parseCIDR('64:ff9b::/96'), at: 6 }, // NAT64 (RFC 6052)
  { range: ipaddr.parseCIDR('2002::/16'), at: 1 }, // 6to4 (RFC 3056)
]

function embeddedIpv4(address: Address): ipaddr.IPv4[] {
  // `::1` is loopback and `::` unspecified, not the addresses 0.0.0.1 and 0.0.0.0.
  if (address.kind() === 'ipv4' || /^::1?$/.test(address.toString())) return []
  const bytes = address.toByteArray()
  const starts = EMBEDDING.filter(({ range }) => isIn(range, address)).map(({ at }) => at)
  if (isIsatap(bytes)) starts.push(6)
  return starts.map((at) => new ipaddr.IPv4(bytes.slice(2 * at, 2 * at + 4)))
}

/** Any prefix, then `0:5efe` or `200:5efe` and an IPv4 address (RFC 5214 §6.1). */
function isIsatap(bytes: readonly number[]): boolean {
  return [0, 2].includes(bytes[8] ?? -1) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe
}
