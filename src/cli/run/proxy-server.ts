import type { ProxyOptions } from '../../proxy/start-proxy.ts'
import type { Session } from '../session/open.ts'
import { DEFAULT_SERVER } from '../session/server-address.ts'

/** How Mayfly is reached, so that nobody reaches it through the proxy. */
export async function serverOfProxy({
  client,
  target: { server },
}: Session): Promise<ProxyOptions['server']> {
  const { issuer } = await client.discovery()
  const own = server.socketPath === undefined ? server.url : DEFAULT_SERVER
  return { isLocal: server.isLocal, addresses: [own, issuer] }
}
