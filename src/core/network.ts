import ipaddr from 'ipaddr.js'

/**
 * The key under which per-address limits count: an IPv4 address (also one mapped into IPv6), or the /64 of an IPv6
 * address, because a /64 is one subscriber (RFC 6177 §2). The kernel wrote the text; any other text is its own key.
 */
export const networkOf = (address: string | null): string => prefixOf(address, 4)

/**
 * The network of an address's owner: the /24 of an IPv4 address, or the /48 of an IPv6 address, which is the most that a site
 * gets (RFC 6177 §2) and holds 65,536 networks of /64.
 */
export function siteOf(address: string | null): string {
  return prefixOf(address, 3).replace(/^(\d+\.\d+\.\d+)\.\d+$/, '$1.0/24')
}

function prefixOf(address: string | null, groups: number): string {
  if (address?.includes(':') !== true) return address ?? ''
  const bare = address.replace(/%.*$/, '')
  if (!ipaddr.isValid(bare)) return address
  const parsed = ipaddr.process(bare)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const parts = (parsed as ipaddr.IPv6).parts.slice(0, groups)
  return `${parts.map((group) => group.toString(16)).join(':')}::/${groups * 16}`
}
