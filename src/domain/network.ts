/**
 * What a limit by address counts by: an IPv4 address (also mapped into IPv6), or the /64 of an IPv6 one, since a
 * /64 is what one subscriber has (RFC 6177 §2). The text comes from the kernel; anything else is taken as it is.
 */
export function networkOf(address: string | null): string {
  if (address === null) return ''
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!address.includes(':')) return address
  const [head = '', tail] = address.toLowerCase().split('%', 1)[0]?.split('::') ?? []
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right]
  return `${groups.slice(0, 4).join(':')}::/64`
}
