import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { endianness } from 'node:os'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Ends } from '../domain/network/socket-table.ts'
import { createPeerUids } from './peer-uid.ts'
import { sharedReads } from './system-files.ts'

const NOBODY = 65_534
const linux = process.platform === 'linux'
const root = linux && process.getuid?.() === 0

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

async function listen(host: string): Promise<{ server: Server; port: number }> {
  const server = createServer({ allowHalfOpen: true })
  server.listen(0, host)
  await once(server, 'listening')
  closers.push(() => server.close())
  return { server, port: (server.address() as { port: number }).port }
}

/** Connects from a process of its own, which sends a byte, then runs `after` once its standard input says so. */
async function connectAs(
  uid: number | undefined,
  host: string,
  bind = '127.0.0.1',
  after = '',
): Promise<{ socket: Socket; go(): void }> {
  const { server, port } = await listen(bind)
  const program = `const s=require('net').connect(${port},'${host}',()=>s.write('x'));s.on('error',()=>{});process.stdin.once('data',()=>{${after}})`
  const child = spawn(process.execPath, ['-e', program], {
    stdio: ['pipe', 'ignore', 'inherit'],
    cwd: '/',
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  closers.push(() => child.kill())
  const [socket] = (await once(server, 'connection')) as [Socket]
  socket.on('error', () => {})
  closers.push(() => socket.destroy())
  await once(socket, 'data')
  return { socket, go: () => void child.stdin.write('go') }
}

const readPeerUid = (ends: Ends) => createPeerUids()(ends)

describe.runIf(linux)('the uid of a peer', () => {
  it('names our own user', async () => {
    const { socket } = await connectAs(undefined, '127.0.0.1')
    expect(await readPeerUid(socket)).toBe(process.getuid?.())
  })

  it.runIf(root).each([
    ['127.0.0.1', '127.0.0.1'],
    ['::1', '::1'],
    ['127.0.0.1', '::'],
    ['::ffff:127.0.0.1', '::'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
    ['127.0.0.5', '0.0.0.0'],
  ])('names another user who connects to %s where we listen on %s', async (host, bind) => {
    const { socket } = await connectAs(NOBODY, host, bind)
    expect(await readPeerUid(socket)).toBe(NOBODY)
  })

  it.runIf(root)('does not take another user who has closed at once for root', async () => {
    const { socket, go } = await connectAs(NOBODY, '127.0.0.1', '127.0.0.1', 's.end(()=>s.destroy())')
    go()
    socket.resume()
    await once(socket, 'end')
    // The kernel still lists that end, as FIN_WAIT2, and on many kernels with uid 0.
    expect(await readPeerUid(socket)).toBeUndefined()
  })

  it('knows nothing of a connection that is not there', async () => {
    expect(
      await readPeerUid({
        localAddress: '127.0.0.1',
        localPort: 1,
        remoteAddress: '127.0.0.1',
        remotePort: 2,
      }),
    ).toBeUndefined()
    expect(await readPeerUid({})).toBeUndefined()
  })
})

describe('createPeerUids', () => {
  const rowOf = (ends: Ends) => {
    const end = (port: number | undefined) => `0100007F:${port?.toString(16).toUpperCase().padStart(4, '0')}`
    return `\n   1: ${end(ends.remotePort)} ${end(ends.localPort)} 01 00000000:00000000 00:00000000 00000000 1000 0 31337 1\n`
  }
  const ends = {
    localAddress: '127.0.0.1',
    localPort: 8620,
    remoteAddress: '127.0.0.1',
    remotePort: 50_000,
  }
  const of = (remotePort: number) => ({ ...ends, remotePort })

  it.runIf(linux)('reads the tables once for each connection', async () => {
    const { socket } = await connectAs(undefined, '127.0.0.1')
    const read: string[] = []
    const peerUid = createPeerUids((path) => {
      read.push(path)
      return readFile(path, 'latin1')
    })
    expect(await peerUid(socket)).toBe(process.getuid?.())
    const before = read.length
    expect(peerUid(socket)).toBe(process.getuid?.())
    expect(read).toHaveLength(before)
    const other = await connectAs(undefined, '127.0.0.1')
    expect(await peerUid(other.socket)).toBe(process.getuid?.())
    expect(read.length).toBeGreaterThan(before)
  })

  it.runIf(endianness() === 'LE')(
    'reads the tables again if the connection was missing in them',
    async () => {
      const texts = ['', '', rowOf(ends), '']
      const peerUid = createPeerUids(async () => texts.shift() ?? '')
      expect(await peerUid(ends)).toBe(1000)
    },
  )

  it.runIf(endianness() === 'LE')(
    'shares a reading that began after all have asked, and no other',
    async () => {
      const asked: PromiseWithResolvers<string>[] = []
      const read = sharedReads(() => {
        const reading = Promise.withResolvers<string>()
        asked.push(reading)
        return reading.promise
      })
      const peerUid = createPeerUids(read)
      const first = peerUid(of(50_001))
      const others = [50_002, 50_003, 50_004].map((port) => peerUid(of(port)))
      expect(asked).toHaveLength(1)
      // It has the others by chance only, so it does not count for them.
      asked[0]?.resolve(rowOf(of(50_001)))
      expect(await first).toBe(1000)
      await vi.waitFor(() => expect(asked).toHaveLength(2))
      asked[1]?.resolve([50_002, 50_003, 50_004].map((port) => rowOf(of(port))).join(''))
      expect(await Promise.all(others)).toEqual([1000, 1000, 1000])
      expect(asked).toHaveLength(2)
    },
  )

  it.runIf(endianness() === 'LE')('reads again after a reading that failed', async () => {
    const answers = [Promise.reject(new Error('EMFILE')), Promise.resolve(rowOf(of(50_002)))]
    const peerUid = createPeerUids(sharedReads(() => answers.shift() ?? Promise.resolve('')))
    const first = peerUid(of(50_001))
    const second = peerUid(of(50_002))
    await expect(first).rejects.toThrow('EMFILE')
    expect(await second).toBe(1000)
  })

  it('does not remember a connection that it did not find', async () => {
    let reads = 0
    const peerUid = createPeerUids(async () => {
      reads += 1
      return ''
    })
    expect(await peerUid(ends)).toBeUndefined()
    const first = reads
    expect(await peerUid(ends)).toBeUndefined()
    expect(reads).toBe(2 * first)
  })
})
