import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { BackendError } from '../domain/backend-error.ts'
import { MAX_UPSTREAM_BYTES } from '../domain/limits.ts'
import { resolveChecked } from './address.ts'
import type { Network } from './network.ts'
import { boundReplies, checkedSocket, connectionError } from './network.ts'

const LOCAL = { local: true, givesLogin: false }
const checkListener = async () => undefined

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listen(answer: (socket: Socket) => void): Promise<number> {
  const server = createServer(answer)
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

const failure = (socket: Socket) => once(socket, 'error').then(([error]: unknown[]) => error)

describe('a checked socket', () => {
  const rules: Network = {
    checkListener,
    resolve: (hostname, options) => resolveChecked(hostname, { ...options, lookup: async () => [] }),
  }

  it('connects to the address that the rules accept, and to no other', async () => {
    const port = await listen((socket) => socket.end('here'))
    const looked: string[] = []
    const resolve = async (hostname: string) => {
      looked.push(hostname)
      return '127.0.0.1'
    }
    const socket = checkedSocket({ resolve, checkListener }, LOCAL).connect(port, 'any.invalid')
    const [chunk] = await once(socket, 'data')
    expect([String(chunk), looked]).toEqual(['here', ['any.invalid']])
    socket.destroy()
  })

  it('does not connect to a forbidden one', async () => {
    let connected = false
    const port = await listen(() => {
      connected = true
    })
    const refused = await failure(
      checkedSocket(rules, { local: false, givesLogin: false }).connect(port, '127.0.0.1'),
    )
    expect(refused).toMatchObject({ fault: 'misconfigured' })
    expect(connected).toBe(false)
  })

  it('stays closed if it is destroyed before the address is known', async () => {
    let connected = false
    const port = await listen(() => {
      connected = true
    })
    const { promise, resolve } = Promise.withResolvers<string>()
    const socket = checkedSocket({ checkListener, resolve: () => promise }, LOCAL).connect(port, 'localhost')
    socket.destroy()
    await once(socket, 'close')
    resolve('127.0.0.1')
    await promise
    expect([socket.connecting, connected]).toEqual([false, false])
  })
})

describe('an open connection whose name moves', () => {
  /** A connection to a server that answers `pong`, its name, and what it wants to know when it looks. */
  async function open() {
    const port = await listen((socket) => {
      socket.on('error', () => undefined)
      socket.on('data', () => socket.write('pong'))
    })
    const name = { address: '127.0.0.1', looked: () => undefined as unknown }
    const resolve = async () => {
      name.looked()
      return name.address
    }
    const socket = checkedSocket({ resolve, checkListener }, { ...LOCAL, followMs: 20 }).connect(
      port,
      'up.test',
    )
    await once(socket, 'connect')
    const look = () =>
      new Promise<void>((seen) => {
        name.looked = () => setImmediate(seen)
      })
    return { socket, name, look }
  }

  it('stays while the name has its address, or nobody knows another one', async () => {
    const { socket, name, look } = await open()
    await look()
    name.looked = () => {
      throw new BackendError('unavailable', 'silent')
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
    await look()
    expect(socket.destroyed).toBe(false)
    socket.destroy()
  })

  it('closes when it is quiet', async () => {
    const { socket, name, look } = await open()
    await look()
    name.address = '127.0.0.2'
    await once(socket, 'close')
  })

  it('closes one look later when it is busy', async () => {
    const { socket, name, look } = await open()
    const ask = () => {
      if (!socket.destroyed) socket.write('ping')
    }
    socket.on('data', ask)
    ask()
    await look()
    name.address = '127.0.0.2'
    await look()
    expect(socket.destroyed).toBe(false)
    await once(socket, 'close')
  })
})

describe('the bound on replies', () => {
  const half = Buffer.alloc(MAX_UPSTREAM_BYTES / 2)

  it('ends a stream that sends more than one reply may have', async () => {
    const port = await listen((socket) => {
      socket.on('error', () => undefined)
      socket.write(Buffer.concat([half, half, Buffer.alloc(1)]))
    })
    const socket = checkedSocket({ checkListener, resolve: async () => '127.0.0.1' }, LOCAL)
    boundReplies(socket)
    expect(await failure(socket.connect(port, 'localhost'))).toMatchObject({
      fault: 'unavailable',
      message: expect.stringContaining('too long'),
    })
  })

  it('counts each reply by itself', async () => {
    const port = await listen((socket) => socket.on('data', () => socket.write(half)))
    const socket = checkedSocket({ checkListener, resolve: async () => '127.0.0.1' }, LOCAL)
    const done = boundReplies(socket)
    await once(socket.connect(port, 'localhost'), 'connect')
    for (let replies = 0; replies < 4; replies += 1) {
      socket.write('more')
      for (let taken = 0; taken < half.length; ) taken += (await once(socket, 'data'))[0].length
      done()
    }
    expect(socket.destroyed).toBe(false)
    socket.destroy()
  })
})

it.each([
  ['ETIMEDOUT', 'timeout', 'X did not answer in time.'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'misconfigured', 'X has a certificate that is not trusted.'],
  ['ECONNREFUSED', 'unavailable', 'X cannot be reached.'],
])('says what the code %s means', (code, fault, message) => {
  const error = connectionError(Object.assign(new Error('text of the upstream'), { code }), 'X')
  expect(error).toBeInstanceOf(BackendError)
  expect(error).toMatchObject({ fault, message, detail: `${code}: text of the upstream` })
})
