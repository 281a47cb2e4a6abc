import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { hostPort } from '../../domain/network/address.ts'
import { createAdmission } from '../admission.ts'
import { ProxyFailure } from '../failure.ts'
import { ignoreErrors, reset } from '../sockets.ts'
import type { Context } from './context.ts'
import { answerBare } from './own-reply.ts'

/** Accepts connections of the users that may connect. */
export interface Listeners {
  open(port: number, onSocket: (raw: Socket) => void): Promise<number>
  close(): Promise<void>
}

const MOST_CONNECTIONS = 4_096
const LOOPBACK = '127.0.0.1'

export function createListeners(ctx: Pick<Context, 'uids' | 'listen' | 'log'>): Listeners {
  const servers = new Set<Server>()
  const open = new Set<Socket>()
  const mayConnect = createAdmission(ctx)

  async function accept(raw: Socket, onSocket: (raw: Socket) => void): Promise<void> {
    ignoreErrors(raw)
    if (open.size >= MOST_CONNECTIONS) return answerBare(raw, 'overloaded')
    open.add(raw)
    raw.once('close', () => open.delete(raw))
    if (!(await mayConnect(raw))) answerBare(raw, 'foreign_user')
    else if (!raw.destroyed) onSocket(raw)
  }

  return {
    async open(port, onSocket) {
      // Who has sent a request may close its half and still get the reply.
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (raw) => void accept(raw, onSocket))
      servers.add(server)
      const host = ctx.listen?.host ?? LOOPBACK
      await new Promise<void>((resolve, reject) => {
        server.once('error', (error) => reject(cannotListen(hostPort(host, port), error)))
        server.listen(port, host, resolve)
      })
      return (server.address() as AddressInfo).port
    },
    async close() {
      const closed = [...servers].map((server) => new Promise((resolve) => server.close(resolve)))
      for (const raw of open) reset(raw)
      await Promise.all(closed)
    },
  }
}

const WHY: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EADDRNOTAVAIL: 'this machine does not have that address',
  EACCES: 'this user may not use that port',
}

function cannotListen(where: string, error: Error): ProxyFailure {
  const { code = '' } = error as { readonly code?: string }
  return new ProxyFailure(
    'cannot_listen',
    `The proxy cannot listen on ${where}: ${WHY[code] ?? error.message}.`,
    'Choose another --listen, or leave the port out for one that is free.',
  )
}
