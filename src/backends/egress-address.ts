import { BlockList, isIP, SocketAddress } from 'node:net'
import { BackendError } from './kind.ts'

export type AddressLookup = (hostname: string) => Promise<readonly { readonly address: string }[]>

/** Never an upstream, marked local or not: cloud metadata, "this host", multicast, broadcast. */
const NEVER = blockList(
  ['169.254.169.254/32', '169.254.170.2/32', '100.100.100.200/32', '0.0.0.0/8', '224.0.0.0/4', '240.0.0.0/4'],
  ['fd00:ec2::254/128', '::/128', 'ff00::/8'],
)
/** Upstreams only when marked local. RFC 1918 addresses are not here: upstreams are often inside. */
const LOCAL = blockList(['127.0.0.0/8', '169.254.0.0/16'], ['::1/128', 'fe80::/10', 'fec0::/10', 'fc00::/7'])

function blockList(v4: readonly string[], v6: readonly string[]): BlockList {
  const list = new BlockList()
  for (const [family, subnets] of [['ipv4', v4] as const, ['ipv6', v6] as const]) {
    for (const subnet of subnets) {
      const [network = '', prefix = ''] = subnet.split('/')
      list.addSubnet(network, Number(prefix), family)
    }
  }
  return list
}

/**
 * Resolves once. One forbidden address among several refuses them all: a name that answers with both is trying
 * something. Throws `BackendError`.
 */
export async function resolveAddress(
  hostname: string,
  local: boolean,
  lookup: AddressLookup,
): Promise<string> {
  const name = hostname.replace(/^\[(.*)\]$/, '$1')
  const found = isIP(name) === 0 ? await lookUp(name, lookup) : [name]
  const first = found[0]
  if (first === undefined) throw new BackendError('unavailable', 'The name of the upstream has no address.')
  for (const address of found) {
    if (!isPermitted(address, local)) {
      throw new BackendError('misconfigured', refusal(local), { detail: `refused address ${address}` })
    }
  }
  return first
}

async function lookUp(name: string, lookup: AddressLookup): Promise<string[]> {
  try {
    return (await lookup(name)).map(({ address }) => address)
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : 'unknown'
    throw new BackendError('unavailable', 'The name of the upstream cannot be resolved.', { detail, cause })
  }
}

function refusal(local: boolean): string {
  return local
    ? 'The upstream has an address that is never connected to (metadata, unspecified, multicast).'
    : 'The upstream has a loopback, link-local or unique-local address; mark the backend "local" if that is meant.'
}

/** Every IPv4 address that an IPv6 one stands for is checked as well. */
export function isPermitted(address: string, local: boolean): boolean {
  return [address, ...embeddedIpv4(address)].every((form) => {
    const version = isIP(form)
    if (version === 0) return false
    const family = version === 4 ? 'ipv4' : 'ipv6'
    const bare = form.replace(/%.*$/, '')
    return !NEVER.check(bare, family) && (local || !LOCAL.check(bare, family))
  })
}

const EMBEDDING: readonly (readonly [prefix: string, at: number])[] = [
  ['::/96', 6], // IPv4-compatible (RFC 4291 §2.5.5.1)
  ['::ffff:0:0/96', 6], // IPv4-mapped
  ['::ffff:0:0:0/96', 6], // IPv4-translated (RFC 2765)
  ['64:ff9b::/96', 6], // NAT64 (RFC 6052)
  ['2002::/16', 1], // 6to4 (RFC 3056)
]

function embeddedIpv4(address: string): string[] {
  if (isIP(address) !== 6) return []
  const groups = expand(address.replace(/%.*$/, ''))
  return EMBEDDING.filter(([subnet]) => {
    const [network = '', prefix = ''] = subnet.split('/')
    const wanted = expand(network)
    return wanted.slice(0, Number(prefix) / 16).every((group, index) => group === groups[index])
  }).flatMap(([, at]) => {
    const high = groups[at] ?? 0
    const low = groups[at + 1] ?? 0
    const text = `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
    // `::1` is loopback, not the address 0.0.0.1.
    return at === 6 && high === 0 && low <= 1 ? [] : [text]
  })
}

/** Eight numbers. */
function expand(address: string): number[] {
  // Node writes it in the shortest form, with a dotted tail where there is one.
  const canonical = new SocketAddress({ address, family: 'ipv6' }).address
  const hex = canonical.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    const pair = (high: string, low: string) => (Number(high) * 256 + Number(low)).toString(16)
    return `${pair(a, b)}:${pair(c, d)}`
  })
  const [front = '', back] = hex.split('::')
  const read = (part: string) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const head = read(front)
  const tail = back === undefined ? [] : read(back)
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail]
}
