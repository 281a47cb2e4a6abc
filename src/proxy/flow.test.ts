import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { join } from './databases/copy.ts'

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

const CONNECTIONS = 8
const BYTES = 16_000_000

test('connections that are never idle let the others have their turn', async () => {
  const upstreams: Socket[] = []
  const copied = Array.from({ length: CONNECTIONS }, async () => {
    const [[child, reader], [upstream, writer]] = await Promise.all([pair(), pair()])
    upstreams.push(upstream)
    void join(child, upstream, { lingerMs: 60_000 })
    writer.write(Buffer.alloc(BYTES))
    let got = 0
    for await (const bytes of reader) {
      got += bytes.length
      if (got === BYTES) return
    }
  })
  let isOver = false
  const all = Promise.all(copied).then(() => {
    isOver = true
  })
  const passed = () => upstreams.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  let most = 0
  for (let before = 0; !isOver; before = passed()) {
    await turn()
    most = Math.max(most, passed() - before)
  }
  await all
  expect(passed()).toBe(CONNECTIONS * BYTES)
  // What all may take, and two pieces of each that were on their way.
  expect(most).toBeLessThanOrEqual((512 + CONNECTIONS * 128) * 1024)
  // So that this can fail: several were busy in one turn.
  expect(most).toBeGreaterThan(512 * 1024)
})
