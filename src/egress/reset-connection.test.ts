import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { resetConnection } from './reset-connection.ts'

async function connected(): Promise<{ socket: Socket; close(): void }> {
  const server = createServer({ allowHalfOpen: true }, (other) => other.on('error', () => {}))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  return { socket, close: () => server.close() }
}

test.each<[string, (socket: Socket) => void]>([
  ['that is open', () => {}],
  ['whose end is being sent', (socket) => socket.end()],
  [
    'that still has to send before its end',
    (socket) => socket.write(Buffer.alloc(50_000_000)) || socket.end(),
  ],
])('a connection %s is closed', async (_, prepare) => {
  const { socket, close } = await connected()
  const errors: unknown[] = []
  socket.on('error', (error) => errors.push(error))
  prepare(socket)
  const closed = once(socket, 'close')
  process.nextTick(() => resetConnection(socket))
  await closed
  expect(errors).toEqual([])
  close()
})
