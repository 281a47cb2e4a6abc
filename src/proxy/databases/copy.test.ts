import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { join } from './copy.ts'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

/** Both ends of a TCP connection. */
async function pair(): Promise<[Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const near = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [far] = (await once(server, 'connection')) as [Socket]
  for (const socket of [near, far]) socket.on('error', () => undefined)
  closers.push(() => {
    for (const socket of [near, far]) socket.destroy()
    server.close()
  })
  return [near, far]
}

test('a connection that is never idle lets the others have their turn', async () => {
  const [child, reader] = await pair()
  const [upstream, writer] = await pair()
  const total = 64_000_000
  let got = 0
  const all = new Promise<void>((resolve) => {
    reader.on('data', (bytes) => {
      got += bytes.length
      if (got === total) resolve()
    })
  })
  void join(child, upstream, { lingerMs: 60_000 })
  writer.write(Buffer.alloc(total))
  let isOver = false
  void all.then(() => {
    isOver = true
  })
  let most = 0
  for (let before = 0; !isOver; before = upstream.bytesRead) {
    await turn()
    most = Math.max(most, upstream.bytesRead - before)
  }
  expect(got).toBe(total)
  // What it may take, and what was on its way.
  expect(most).toBeLessThanOrEqual(384 * 1024)
  // So that this can fail: it came in large pieces.
  expect(most).toBeGreaterThan(64 * 1024)
})
