import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { endianness } from 'node:os'
import { afterEach, describe, expect, it } from 'vitest'
import { findPeerUid, readPeerUid } from './peer-uid.ts'

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

describe.runIf(linux)('readPeerUid', () => {
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

describe.runIf(endianness() === 'LE')('findPeerUid', () => {
  const HEAD =
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'
  const row = (state = '01', uid = '1000', inode = '31337') =>
    `   1: 0100007F:BC8C 0100007F:2120 ${state} 00000000:00000000 00:00000000 00000000 ${uid} 0 ${inode} 1 0 20 4 30 10 -1`
  const ours = {
    localAddress: '127.0.0.1',
    localPort: 0x2120,
    remoteAddress: '127.0.0.1',
    remotePort: 0xbc8c,
  }
  const find = (...rows: string[]) => findPeerUid(ours, [[HEAD, ...rows].join('\n'), ''])

  it('reads the row of the other end', () => {
    expect(find(row())).toBe(1000)
    expect(
      findPeerUid({ ...ours, remoteAddress: '::ffff:127.0.0.1', localAddress: '::ffff:127.0.0.1' }, [
        `${HEAD}\n${row()}`,
      ]),
    ).toBe(1000)
  })

  it.each([
    ['TIME_WAIT', row('06', '0', '0')],
    ['FIN_WAIT2 of a closed end', row('05', '0', '0')],
    ['SYN_SENT', row('02', '0', '7')],
    ['an orphan shown as established', row('01', '0', '0')],
    ['a row without numbers', row('01', 'root', '7')],
    ['a cut row', row().slice(0, 50)],
  ])('does not trust %s', (_name, text) => {
    expect(find(text)).toBeUndefined()
  })

  it('does not choose between two rows, nor take our own end', () => {
    expect(find(row(), row('01', '0'))).toBeUndefined()
    expect(
      findPeerUid({ ...ours, localPort: ours.remotePort, remotePort: ours.localPort }, [`${HEAD}\n${row()}`]),
    ).toBeUndefined()
  })
})
