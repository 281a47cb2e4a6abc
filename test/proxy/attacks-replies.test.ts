import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Attacked, attacked, BEARER } from './attacks-world.ts'
import { ask, textOf } from './traffic-clients.ts'
import { heldFake, httpUse, PLACEHOLDER, SECRET } from './traffic-world.ts'

let it: Attacked
beforeAll(async () => {
  it = await attacked()
})
afterAll(() => it[Symbol.asyncDispose]())
beforeEach(() => {
  it.arrived.length = 0
  it.world.lines.length = 0
  it.answer((_request, response) => response.end('fine'))
})

const FORMS = [
  SECRET,
  Buffer.from(`user:${SECRET}`).toString('base64'),
  encodeURIComponent(SECRET),
  JSON.stringify(SECRET).replaceAll('/', '\\/'),
]

test.each([BEARER, {}])(
  'no form of the secret comes back, whether the request had one or not',
  async (headers) => {
    // A request before gave it to the upstream.
    await ask({ port: it.port, headers: BEARER })
    for (const form of FORMS) {
      it.answer((_request, response) => {
        response.setHeader('x-echo', form)
        response.setHeader('set-cookie', [`t=${form}`, 'a=b'])
        response.writeHead(302, { 'content-type': 'text/html', location: `https://evil.example/?t=${form}` })
        response.write(`<p>${form.slice(0, 7)}`)
        setImmediate(() => response.end(`${form.slice(7)}</p>`))
      })
      const reply = await ask({ port: it.port, headers })
      expect(reply.status).toBe(302)
      expect(JSON.stringify(reply)).not.toContain(form)
      expect(reply.headers.location).toMatch(/^https:\/\/evil\.example\/\?t=.{0,7}\*{20}/)
      expect(reply.body).toContain('***')
    }
  },
)

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['deflate', deflateSync],
] as const)('a reply in %s to a request without a secret is read and masked', async (encoding, compress) => {
  it.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding })
    response.end(compress(`{"last": "${SECRET}"}`))
  })
  expect((await ask({ port: it.port })).body).toBe(`{"last": "${'*'.repeat(SECRET.length)}"}`)
})

test('a reply in gzip to a request for a WebSocket is read and masked, too', async () => {
  const body = gzipSync(`{"last": "${SECRET}"}`)
  it.upstream.once('upgrade', (_request, socket) => {
    const lines = ['HTTP/1.1 200 OK', 'Content-Type: application/json', 'Content-Encoding: gzip']
    socket.end(
      Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n`), body]),
    )
  })
  const asked = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
  const reply = await ask({ port: it.port, headers: { ...BEARER, ...asked, 'sec-websocket-key': 'x' } })
  expect(reply.body).toBe(`{"last": "${'*'.repeat(SECRET.length)}"}`)
  expect(reply.headers['content-encoding']).toBe(undefined)
})

test('a credential that just gives no secret still has its replies masked', async () => {
  await ask({ port: it.port, headers: BEARER })
  it.answer((_request, response) => response.end(SECRET))
  const { state } = it.held
  it.held.state = { state: 'unsure', why: 'test' }
  const reply = await ask({ port: it.port })
  it.held.state = state
  expect(reply.body).toBe('*'.repeat(SECRET.length))
})

describe('what took the best proxy too long', () => {
  test.concurrent('a reply that begins after 11 s arrives', async () => {
    await using slow = await attacked({}, { idleMs: 60_000 })
    slow.answer((_request, response) => void setTimeout(() => response.end('late'), 11_000))
    expect(await ask({ port: slow.port, headers: BEARER })).toMatchObject({ status: 200, body: 'late' })
  })

  test.concurrent('an upload of 7 s arrives', async () => {
    await using slow = await attacked({}, { idleMs: 60_000 })
    slow.answer((incoming, response) => void textOf(incoming).then((text) => response.end(text)))
    const outgoing = request({ port: slow.port, method: 'POST', headers: BEARER, agent: false })
    for (let left = 7; left > 0; left -= 1) {
      outgoing.write('x')
      await delay(1_000)
    }
    outgoing.end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(await textOf(incoming)).toBe('xxxxxxx')
  })
})

test('an open stream is cut when its credential ends, and the next request gets nothing', async () => {
  await using one = await attacked()
  one.answer((_request, response) => void response.write('data: 1\n\n'))
  const outgoing = request({ port: one.port, headers: BEARER, agent: false }).end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  outgoing.on('error', () => undefined)
  await once(incoming, 'data')
  const broken = once(incoming, 'error')
  one.held.state = { state: 'ended', why: 'test' }
  expect(one.world.cuts.cut('cred_api')).toBeGreaterThan(0)
  expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
  expect((await ask({ port: one.port, headers: BEARER })).status).toBe(403)
  expect(one.arrived).toHaveLength(1)
  await expect.poll(() => one.world.lines.map(({ reason }) => reason)).toEqual(['ended', 'ended'])
})

test('a key that was replaced is injected no more, also on a connection that stays', async () => {
  await using one = await attacked()
  const { Agent } = await import('node:http')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const send = async () => {
    const outgoing = request({ port: one.port, headers: BEARER, agent }).end()
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    await textOf(incoming)
  }
  await send()
  const { state } = one.held
  if (state.state !== 'live') throw new Error('not live')
  one.held.state = { ...state, credentialId: 'cred_2', secrets: new Map([['', 'replaced-key-0123456789']]) }
  one.world.cuts.cut('cred_api')
  await send()
  agent.destroy()
  expect(one.arrived.map(({ headers }) => headers.authorization)).toEqual([
    `Bearer ${SECRET}`,
    'Bearer replaced-key-0123456789',
  ])
})

test('a stream that nobody reads, and its end, hold up no other request', async () => {
  await using one = await attacked()
  const streams: ServerResponse[] = []
  one.answer((incoming, response) => {
    if (incoming.url !== '/stream') return void response.end('fine')
    streams.push(response)
    response.write(Buffer.alloc(4 * 1024 * 1024))
  })
  const stuck = request({ port: one.port, path: '/stream', headers: BEARER, agent: false }).end()
  const [incoming] = (await once(stuck, 'response')) as [IncomingMessage]
  stuck.on('error', () => undefined)
  incoming.on('error', () => undefined).pause()
  const before = performance.now()
  for (let left = 20; left > 0; left -= 1) await ask({ port: one.port, headers: BEARER })
  one.world.cuts.cut('cred_api')
  expect(performance.now() - before).toBeLessThan(5_000)
})

test('every answer has a line, and none has a query, a header or a secret', async () => {
  await ask({ port: it.port, path: '/v1/x?token=abc', headers: { ...BEARER, 'x-private': 'def' } })
  await expect.poll(() => it.world.lines.length).toBe(1)
  expect(it.world.lines[0]).toMatchObject({
    method: 'GET',
    status: 200,
    decision: 'injected',
    credentialId: 'cred_api',
  })
  for (const one of ['abc', 'def', SECRET, PLACEHOLDER])
    expect(JSON.stringify(it.world.lines)).not.toContain(one)
})

describe('a place in the body', () => {
  const places = [{ in: 'body', name: 'key', maxBytes: 1_000 }] as const
  const headers = { 'content-type': 'application/json' }

  test('is bounded, and the rest is refused', async () => {
    await using one = await attacked({ places })
    const got: string[] = []
    one.answer(
      (incoming, response) =>
        void textOf(incoming).then((text) => {
          got.push(text)
          response.end()
        }),
    )
    const send = (body: object) =>
      ask({ port: one.port, method: 'POST', headers }, JSON.stringify(body)).then(({ status }) => status)
    expect(await send({ key: PLACEHOLDER })).toBe(200)
    expect(got).toEqual([JSON.stringify({ key: SECRET })])
    expect(await send({ key: PLACEHOLDER, more: 'x'.repeat(1_000) })).toBe(413)
    expect(await send({ other: PLACEHOLDER })).toBe(403)
    expect(await send({ nested: { key: PLACEHOLDER } })).toBe(403)
    expect(got).toHaveLength(1)
    expect(one.world.misused).toHaveLength(2)
  })
})

describe.runIf(process.platform === 'linux' && process.getuid?.() === 0)('another user', () => {
  test('is refused', async () => {
    const program = `require('http').get({port: ${it.port}, headers: {authorization: 'Bearer ${PLACEHOLDER}'}}, (r) => { console.log(r.statusCode); process.exit() }).on('error', (e) => { console.log(e.code); process.exit() })`
    const { spawn } = await import('node:child_process')
    const child = spawn(process.execPath, ['-e', program], { uid: 65_534, gid: 65_534, cwd: '/', env: {} })
    const [said] = (await once(child.stdout, 'data')) as [Buffer]
    expect(['403', 'ECONNRESET']).toContain(String(said).trim())
    expect(it.arrived).toHaveLength(0)
  })
})

test('who is turned away keeps no connection, however much is sent', async () => {
  await using one = await attacked({}, { uids: [65_533] })
  const socket = connect(one.port, '127.0.0.1')
  socket.on('error', () => undefined).resume()
  const timer = setInterval(() => socket.write('x'), 200)
  const before = performance.now()
  await once(socket, 'close')
  clearInterval(timer)
  // A few seconds; what it sends never ends.
  expect(performance.now() - before).toBeLessThan(30_000)
})

test('a flood of connections leaves room for the requests of those that are open', async () => {
  await using one = await attacked({}, { uids: 'any' })
  const sockets: Socket[] = []
  let refused = 0
  for (let count = 0; count < 4_150; count += 50) {
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = connect(one.port, '127.0.0.1')
        sockets.push(socket)
        socket.on('error', () => undefined)
        socket.on('data', (text) => {
          if (String(text).includes('proxy_overloaded')) refused += 1
        })
        await once(socket, 'connect')
      }),
    )
  }
  await expect.poll(() => refused).toBeGreaterThanOrEqual(50)
  sockets[0]?.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${one.port}\r\n\r\n`)
  const [reply] = (await once(sockets[0] as Socket, 'data')) as [Buffer]
  expect(String(reply)).toContain('HTTP/1.1 200')
  for (const socket of sockets) socket.destroy()
  await expect.poll(async () => (await ask({ port: one.port })).status).toBe(200)
})

test('a connection is one user’s only: another credential’s placeholder at this base URL is misuse', async () => {
  const other = heldFake(
    'other',
    [httpUse('https://other.example')],
    'other-secret-012345',
    'mfph_other_0123456789abcdefghij',
  )
  const held = heldFake('api', [it.site.use])
  const { trafficWorld } = await import('./traffic-world.ts')
  const world = trafficWorld([held, other])
  const site = await world.traffic.openSite(held, it.site.use)
  const headers = { authorization: 'Bearer mfph_other_0123456789abcdefghij' }
  expect((await ask({ port: Number(new URL(site.url).port), headers })).status).toBe(403)
  expect(world.misused).toEqual([other])
  expect(it.arrived).toHaveLength(0)
  await world.close()
})
