import type { Socket } from 'node:net'
import { hostPort } from '../../domain/network/address.ts'
import { authorityText, readOrigin } from '../../domain/network/authority.ts'
import type { HttpUse } from '../../domain/use.ts'
import type { Held, Site } from '../types.ts'
import type { Context } from './context.ts'
import type { Inbound, Way } from './inbound/inbound.ts'
import type { Listeners } from './listeners.ts'
import type { SiteOptions } from './parts.ts'
import { type OnSecure, openSecure } from './secure.ts'
import type { Servers } from './servers.ts'

const LOOPBACK = '127.0.0.1'

/** A listener that stands for the origin of a use. */
export async function openSite(
  ctx: Context,
  { listeners, servers }: { readonly listeners: Listeners; readonly servers: Servers },
  { held, use, tls = false }: SiteOptions & { readonly held: Held; readonly use: HttpUse },
): Promise<Site> {
  const { host = LOOPBACK } = ctx.listen ?? {}
  // Known when it listens, and needed for the first connection only.
  let way: Way | undefined
  const onSocket = (raw: Socket) => {
    if (way === undefined) raw.destroy()
    else if (tls) void secure(ctx, servers, raw, host, way)
    else servers.take(raw, way, 'http/1.1')
  }
  const actual = await listeners.open(0, onSocket)
  const url = `${tls ? 'https' : 'http'}://${hostPort(host, actual)}`
  const listener = [...new Set([host, LOOPBACK, 'localhost', '::1'])].map((one) => hostPort(one, actual))
  way = { ...wayOf(use), site: { known: { held, use }, listener, url } }
  return { held, use, url }
}

function wayOf({ origin }: HttpUse): Pick<Way, 'authority' | 'scheme'> {
  const read = readOrigin(origin)
  if (read === undefined) throw new Error('the origin of a use is not an authority')
  return { scheme: read.scheme, authority: `${read.wildcard ? '*.' : ''}${authorityText(read)}` }
}

function secure(ctx: Context, servers: Servers, raw: Socket, name: string, way: Way): Promise<void> {
  const onSecure: OnSecure = (socket, protocol) => servers.take(socket, way, protocol)
  return openSecure(ctx.authority, raw, name, { onSecure }).catch(() => {
    raw.destroy()
  })
}

/** A page in a browser has no business here, whatever site it is of. */
export function isCrossSite({ headers }: Inbound): boolean {
  return headers.some(([name, value]) => {
    const lower = name.toLowerCase()
    return lower === 'origin' || (lower === 'sec-fetch-site' && value !== 'none')
  })
}
