import { hostPort } from '../../domain/network/address.ts'
import { createContext } from './context.ts'
import { createForward, newLogin } from './forward.ts'
import { createListeners } from './listeners.ts'
import type { Traffic, TrafficParts } from './parts.ts'
import { serve } from './serve.ts'
import { createServers, type OnRequest } from './servers.ts'
import { isCrossSite, openSite } from './site.ts'

export function createTraffic(parts: TrafficParts): Traffic {
  const ctx = createContext(parts)
  const listeners = createListeners(ctx)
  const onRequest: OnRequest = (inbound, way, socketed) => {
    const isForeign = way.site !== undefined && isCrossSite(inbound)
    void serve(ctx, inbound, isForeign ? { ...way, refused: 'cross_site' } : way, socketed)
  }
  const servers = createServers(ctx, onRequest)
  const login = newLogin()
  const forward = createForward(ctx, login, servers, onRequest)
  return {
    openSite: (held, use, options = {}) => openSite(ctx, { listeners, servers }, { held, use, ...options }),
    async openForward({ port = 0 } = {}) {
      const actual = await listeners.open(port, forward.take)
      const [user, password] = [login.user, login.password].map(encodeURIComponent)
      const host = ctx.listen?.host ?? '127.0.0.1'
      return { url: `http://${user}:${password}@${hostPort(host, actual)}` }
    },
    async close() {
      ctx.pools.close()
      await listeners.close()
      servers.close()
      forward.close()
    },
  }
}
