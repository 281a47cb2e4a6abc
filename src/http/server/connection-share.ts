import type { Server } from 'node:http'
import { BlockList, isIPv6, type Socket } from 'node:net'
import { siteOf } from '../../core/network.ts'

/** Of all connections, one site may have this part, so that it cannot keep out all others. */
const SHARE = 4
/** Where a proxy on this machine has its connections from. */
const OWN = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1'])

/**
 * Closes a connection at once that would be more than the share of its site in `maxConnections` of the listener. Proxies have no share:
 * many are behind them.
 */
export function shareConnections(
  listener: Server,
  { proxies }: { readonly proxies: readonly string[] },
): void {
  const trusted = blockListOf(proxies)
  const counts = new Map<string, number>()
  listener.on('connection', (socket: Socket) => {
    const { remoteAddress: address } = socket
    // A unix socket has no address, and only an administrator opens it.
    if (address === undefined || OWN.has(address)) return
    if (trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return
    const site = siteOf(address)
    const count = counts.get(site) ?? 0
    if (count >= Math.ceil(listener.maxConnections / SHARE)) {
      socket.destroy()
      return
    }
    counts.set(site, count + 1)
    socket.once('close', () => {
      const left = (counts.get(site) ?? 1) - 1
      if (left === 0) counts.delete(site)
      else counts.set(site, left)
    })
  })
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}
