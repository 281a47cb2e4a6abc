import { connect, createServer, type Socket } from 'node:net'

export interface RewritingProxy {
  readonly port: number
  close(): Promise<void>
}

/**
 * Stands before a server and replaces what clients say. Each text must fit the length of what it replaces, as protocols count
 * bytes, and arrive in one piece, as a statement does over loopback.
 */
export async function startRewritingProxy(
  port: number,
  replace: Readonly<Record<string, string>>,
): Promise<RewritingProxy> {
  const texts = Object.entries(replace)
  for (const [from, to] of texts)
    if (from.length !== to.length) throw new Error(`${from} is not as long as ${to}`)
  const open = new Set<Socket>()
  const keep = (socket: Socket, other: Socket) => {
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      open.delete(socket)
      other.destroy()
    })
  }
  const listener = createServer((client) => {
    const server = connect(port, '127.0.0.1')
    keep(client, server)
    keep(server, client)
    client.on('data', (chunk) => {
      let said = chunk.toString('latin1')
      for (const [from, to] of texts) said = said.replaceAll(from, to)
      server.write(said, 'latin1')
    })
    server.on('data', (chunk) => client.write(chunk))
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  listener.once('error', reject)
  listener.listen(0, '127.0.0.1', resolve)
  await promise
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  return {
    port: address.port,
    async close() {
      for (const socket of open) socket.destroy()
      const closed = Promise.withResolvers<void>()
      listener.close(() => closed.resolve())
      await closed.promise
    },
  }
}
