import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createAdmission } from '../admission.ts'
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
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, ctx.listen?.host ?? LOOPBACK, resolve)
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
