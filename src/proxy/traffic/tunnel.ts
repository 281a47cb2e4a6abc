import type { Socket } from 'node:net'
import { ignoreErrors, reset } from '../sockets.ts'
import { bridge } from './bridge.ts'
import type { Context } from './context.ts'
import { Failure } from './failure.ts'
import { beginLine } from './line.ts'
import { destinationOf } from './serve.ts'

/** Whether TLS to this host is not opened. `*.` stands for one or more labels. */
export function isTunnelled(names: readonly string[], host: string): boolean {
  return names.some((name) =>
    name.startsWith('*.') ? host.endsWith(name.slice(1).toLowerCase()) : host === name.toLowerCase(),
  )
}

/** Copies bytes that nobody reads. Throws `Failure` before anything was accepted. */
export async function openTunnel(
  ctx: Context,
  authority: string,
  socket: Socket,
  accept: () => void,
): Promise<void> {
  // A name stands for more than `others`: an administrator's choice of this one.
  const to = destinationOf({ others: 'inspect' }, 'https', authority, undefined)
  const line = beginLine(ctx, { method: null, authority, protocol: 'tunnel' })
  const upstream = await ctx.pools.open({ ...to, scheme: 'http' }, null)
  if (socket.destroyed) {
    reset(upstream)
    throw new Failure('broken')
  }
  ignoreErrors(upstream)
  accept()
  line.decision = 'tunnelled'
  bridge({ socket, upstream, line, idleMs: ctx.idleMs, masking: undefined })
}
