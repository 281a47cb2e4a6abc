import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { listenAs, NOBODY } from '../../test/support/listener-as.ts'
import { createListenerCheck, type ListenerRules } from './listener.ts'

const linux = process.platform === 'linux'
const isRoot = linux && process.getuid?.() === 0

async function connectTo(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

function checkOf(rules: Partial<ListenerRules>, read?: (path: string) => Promise<string>) {
  const warnings: string[] = []
  const log = { warn: (_: object, message: string) => void warnings.push(message) }
  const parts = read === undefined ? {} : { read }
  return {
    warnings,
    check: createListenerCheck({ serviceAccounts: [], localUser: '', log, ...rules }, parts),
  }
}

describe.runIf(isRoot)('the check of a listener', () => {
  it('accepts our own, and root', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = await connectTo((server.address() as { port: number }).port)
    await checkOf({}).check(socket)
    socket.destroy()
    server.close()
  })

  it('refuses another account, unless the kind or the configuration names it', async () => {
    await using listener = await listenAs(NOBODY)
    const socket = await connectTo(listener.port)
    await expect(checkOf({}).check(socket)).rejects.toMatchObject({
      fault: 'unavailable',
      message: expect.stringMatching(/^Another account .*"local_user"/),
      detail: `uid ${NOBODY}`,
    })
    await expect(checkOf({ localUser: 'daemon', serviceAccounts: ['mysql'] }).check(socket)).rejects.toThrow()
    await checkOf({ localUser: 'nobody' }).check(socket)
    await checkOf({ localUser: String(NOBODY) }).check(socket)
    await checkOf({ serviceAccounts: ['mysql', 'nobody'] }).check(socket)
    socket.destroy()
  })

  it('only warns, once, where the configuration was stored before there was "local_user"', async () => {
    await using listener = await listenAs(NOBODY)
    const socket = await connectTo(listener.port)
    const { check, warnings } = checkOf({ localUser: undefined })
    await check(socket)
    await check(socket)
    expect(warnings).toEqual([expect.stringContaining('name it in "local_user"')])
    socket.destroy()
  })

  it('takes a connection that waits to be accepted as its listener, and one that was accepted meanwhile as its process', async () => {
    await using listener = await listenAs(NOBODY)
    const socket = await connectTo(listener.port)
    const table = (path: string) => readFile(path, 'latin1')
    const port = listener.port.toString(16).toUpperCase().padStart(4, '0')
    const ourPort = socket.localPort?.toString(16).toUpperCase().padStart(4, '0')
    // The row of the accepted end, as the kernel shows it before: without an inode.
    const waiting = (text: string) =>
      text.replace(
        new RegExp(`(: 0100007F:${port} 0100007F:${ourPort} 01 \\S+ \\S+ \\S+) +\\d+( +\\d+) \\d+ `),
        '$1 0$2 0 ',
      )
    const inQueue = checkOf({ localUser: 'nobody' }, async (path) => waiting(await table(path)))
    await inQueue.check(socket)
    let reads = 0
    const swapped = async (path: string) => {
      const text = await table(path)
      if (path !== '/proc/net/tcp') return path === '/etc/passwd' ? text : ''
      reads += 1
      // Twice it is not accepted, then root listens, then it turns out to have been accepted by nobody.
      if (reads <= 2) return waiting(text)
      return text.replace(new RegExp(`(: 0100007F:${port} 00000000:0000 0A \\S+ \\S+ \\S+) +\\d+`), '$1 0')
    }
    await expect(checkOf({}, swapped).check(socket)).rejects.toMatchObject({ detail: `uid ${NOBODY}` })
    expect(reads).toBeGreaterThan(3)
    socket.destroy()
  })

  it('refuses where the tables do not say', async () => {
    await using listener = await listenAs(NOBODY)
    const socket = await connectTo(listener.port)
    await expect(checkOf({ localUser: 'nobody' }, async () => '').check(socket)).rejects.toMatchObject({
      message: expect.stringMatching(/^It cannot be determined/),
    })
    socket.destroy()
  })
})

it('asks nobody about an address of another machine', async () => {
  const { check } = checkOf({}, () => Promise.reject(new Error('read')))
  await check({ remoteAddress: '192.0.2.1', remotePort: 5432 } as Socket)
})
