import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Tags of requests (RFC 4511 §4.2 and on). */
export const DELETE_REQUEST = 0x4a
const DELETE_RESPONSE = 0x6b

export interface LdapProxy extends AsyncDisposable {
  readonly url: string
}

/**
 * Stands before a server without TLS. `act` is asked for each request, by its tag: `lose` passes it on, and cuts the connection
 * when the answer comes; `claim` answers a deletion with success in the server's place.
 */
export async function startLdapProxy(
  server: string,
  act: (tag: number) => 'pass' | 'lose' | 'claim',
): Promise<LdapProxy> {
  const { port } = new URL(server)
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const upstream = connect(Number(port), '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    let isLost = false
    let pending = Buffer.alloc(0)
    client.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk])
      for (let end = endOf(pending); end <= pending.length; end = endOf(pending)) {
        const message = pending.subarray(0, end)
        pending = pending.subarray(end)
        const { id, tag } = headOf(message)
        const what = act(tag)
        isLost ||= what === 'lose'
        if (what === 'claim') client.write(successOf(id, DELETE_RESPONSE))
        else upstream.write(message)
      }
    })
    upstream.on('data', (chunk: Buffer) => (isLost ? client.destroy() : client.write(chunk)))
    client.on('close', () => upstream.end())
    upstream.on('close', () => client.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    url: `ldap://localhost:${(proxy.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => proxy.close(resolve))
    },
  }
}

/** Where the first message ends (X.690 §8.1.3); infinite until its length is there. */
function endOf(bytes: Buffer): number {
  const [, first] = bytes
  if (first === undefined) return Number.POSITIVE_INFINITY
  if (first < 0x80) return 2 + first
  const size = first & 0x7f
  return bytes.length < 2 + size ? Number.POSITIVE_INFINITY : 2 + size + bytes.readUIntBE(2, size)
}

/** SEQUENCE { INTEGER id, operation } */
function headOf(message: Buffer): { id: Buffer; tag: number } {
  const start = message.readUInt8(1) < 0x80 ? 2 : 2 + (message.readUInt8(1) & 0x7f)
  const end = start + 2 + message.readUInt8(start + 1)
  return { id: message.subarray(start, end), tag: message.readUInt8(end) }
}

function successOf(id: Buffer, tag: number): Buffer {
  const content = Buffer.concat([id, Buffer.from([tag, 7, 0x0a, 1, 0, 4, 0, 4, 0])])
  return Buffer.concat([Buffer.from([0x30, content.length]), content])
}
