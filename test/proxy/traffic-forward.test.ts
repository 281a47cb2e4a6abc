import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createServer as createTls } from 'node:https'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { run } from '../support/run-program.ts'
import {
  ask,
  askThrough,
  connectThrough,
  http2Through,
  loginOf,
  secureThrough,
  sendRaw,
  textOf,
} from './traffic-clients.ts'
import {
  type HeldFake,
  heldFake,
  httpUse,
  leadingTo,
  listening,
  PLACEHOLDER,
  SECRET,
  type TrafficWorld,
  testCertificates,
  trafficWorld,
} from './traffic-world.ts'

const certificates = testCertificates('api.test', 'other.test', 'old.test')
const directory = mkdtempSync(join(tmpdir(), 'mf-forward-'))
type Answer = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => void
let answer: Answer
const { cert, key } = certificates.server
const modern = createSecureServer({ cert, key, allowHTTP1: true }, (request, response) =>
  answer(request, response as never),
)
const old = createTls({ cert, key }, (request, response) => answer(request, response))
let held: HeldFake
let world: TrafficWorld
let url: string
let ports: { modern: number; old: number }
let secure: { readonly ca: string }

beforeAll(async () => {
  ports = { modern: await listening(modern), old: await listening(old) }
  const ca = certificates.server.ca
  const uses = [
    httpUse(`https://api.test:${ports.modern}`, { ca }),
    httpUse(`https://old.test:${ports.old}`, { ca }),
  ]
  held = heldFake('api', uses)
  world = trafficWorld([held], {
    names: {
      ...{ 'api.test': ['127.0.0.1'], 'old.test': ['127.0.0.1'], 'other.test': ['203.0.113.5'] },
      ...{
        'rebound.test': ['203.0.113.5', '127.0.0.1'],
        'inside.test': ['192.168.1.1'],
        'mayfly.test': ['127.0.0.1'],
      },
      ...{ 'pinned.test': ['203.0.113.5'], 'meta.test': ['169.254.169.254'] },
    },
    connect: leadingTo({ '203.0.113.5': ports.modern }),
    ownServer: ['mayfly.test:8443', `127.0.0.1:8443`, 'mayfly.test:443'],
    tunnel: ['pinned.test'],
  })
  url = (await world.traffic.openForward()).url
  secure = { ca: world.certificate }
  writeFileSync(join(directory, 'ca.pem'), world.certificate)
})
beforeEach(() => {
  world.lines.length = 0
  world.misused.length = 0
  answer = (_request, response) => response.end('fine')
})
afterAll(async () => {
  await world.close()
  modern.close()
  old.close()
  certificates.remove()
  rmSync(directory, { recursive: true, force: true })
})

const BEARER = { authorization: `Bearer ${PLACEHOLDER}` }

test('curl gets through by the variable alone', async () => {
  let got: string | undefined
  answer = (request, response) => {
    got = request.headers.authorization
    response.end(`${request.httpVersion} ${request.headers.authorization}`)
  }
  const env = { ...process.env, HTTPS_PROXY: url, CURL_CA_BUNDLE: join(directory, 'ca.pem') }
  const args = (...more: string[]) => ['-sS', '-H', `Authorization: Bearer ${PLACEHOLDER}`, ...more]
  const run = promisify(execFile)
  for (const [version, flag] of [
    ['1.1', '--http1.1'],
    ['2.0', '--http2'],
  ] as const) {
    const { stdout } = await run('curl', args(flag, `https://api.test:${ports.modern}/x`), { env })
    expect(stdout).toBe(`${version} Bearer ${'*'.repeat(SECRET.length)}`)
    expect(got).toBe(`Bearer ${SECRET}`)
  }
})

test.each([
  ['none', ''],
  ['a wrong one', `Basic ${Buffer.from('mayfly:wrong').toString('base64')}`],
  ['another scheme', 'Bearer x'],
])('with a login that is %s: 407, the scheme, and a closed connection', async (_what, login) => {
  const { reply, socket } = await connectThrough(url, `api.test:${ports.modern}`, login)
  expect(reply).toMatch(/^HTTP\/1.1 407 /)
  expect(reply).toMatch(/\r\nProxy-Authenticate: Basic realm="mayfly"\r\n/)
  expect(reply).toMatch(/\r\nConnection: close\r\n/i)
  socket.resume()
  await once(socket, 'end')
  const plain = await ask({
    port: Number(new URL(url).port),
    path: 'http://api.test/',
    headers: { host: 'api.test', 'proxy-authorization': login },
  })
  expect(plain.status).toBe(407)
})

test('HTTP/2 from end to end, with trailers', async () => {
  let version = ''
  answer = (request, response) => {
    version = request.httpVersion
    const reply = response as Http2ServerResponse
    reply.writeHead(200, { 'content-type': 'application/grpc' })
    reply.write('message')
    reply.addTrailers({ 'grpc-status': '0', 'grpc-message': SECRET })
    reply.end()
  }
  const session = await http2Through(url, `api.test:${ports.modern}`, world.certificate)
  const stream = session.request({ ':path': '/svc/Method', ':method': 'POST', te: 'trailers', ...BEARER })
  stream.end('request')
  const trailers = once(stream, 'trailers')
  expect(await textOf(stream)).toBe('message')
  expect((await trailers)[0]).toMatchObject({ 'grpc-status': '0', 'grpc-message': '*'.repeat(SECRET.length) })
  expect(version).toBe('2.0')
  session.close()
})

test('HTTP/2 to an upstream that has none', async () => {
  answer = (request, response) => {
    void textOf(request as IncomingMessage).then((body) =>
      (response as ServerResponse).end(`${request.httpVersion} ${body}`),
    )
  }
  const session = await http2Through(url, `old.test:${ports.old}`, world.certificate)
  for (const body of ['one', 'two']) {
    const stream = session.request({ ':path': '/', ':method': 'POST', cookie: 'a=b', ...BEARER })
    stream.end(body)
    expect(await textOf(stream)).toBe(`1.1 ${body}`)
  }
  session.close()
})

test('a stream that breaks upstream breaks below, and no other', async () => {
  const pending: Http2ServerResponse[] = []
  answer = (request, response) => {
    ;(response as Http2ServerResponse).write('begin')
    if (request.url === '/breaks') setImmediate(() => (response as Http2ServerResponse).stream.close(2))
    else pending.push(response as Http2ServerResponse)
  }
  const session = await http2Through(url, `api.test:${ports.modern}`, world.certificate)
  const stays = session.request({ ':path': '/stays', ...BEARER })
  await once(stays, 'data')
  const breaks = session.request({ ':path': '/breaks', ...BEARER })
  breaks.resume()
  await expect(once(breaks, 'end').then(() => once(breaks, 'close'))).rejects.toThrow()
  expect(breaks.rstCode).toBe(2)
  pending[0]?.end('end')
  expect(await textOf(stays)).toBe('end')
  session.close()
})

test.each([0, 8])(
  'an upload over HTTP/2 that the client resets with %i has no end upstream',
  async (code) => {
    const upload = Promise.withResolvers<{ complete: boolean; got: string }>()
    answer = async (request) => {
      let got = ''
      request.on('data', (chunk: Buffer) => {
        got += String(chunk)
        if (got === 'part') stream.close(code)
      })
      request.on('error', () => undefined)
      request.once('close', () => upload.resolve({ complete: request.complete, got }))
    }
    const session = await http2Through(url, `old.test:${ports.old}`, world.certificate)
    const stream = session.request({ ':path': '/', ':method': 'POST', ...BEARER })
    stream.on('error', () => undefined)
    stream.write('part')
    expect(await upload.promise).toEqual({ complete: false, got: 'part' })
    session.close()
  },
)

test('an authority of no backend is forwarded unchanged, by the checked address', async () => {
  let got: unknown
  answer = (request, response) => {
    got = [request.headers['accept-encoding'], request.headers['x-any']]
    response.end('other')
  }
  world.lines.length = 0
  const options = { path: '/secret-path', headers: { 'accept-encoding': 'br', 'x-any': '1' } }
  // The certificate of the upstream is not one that the system trusts.
  const reply = await askThrough(url, 'other.test:443', secure, options)
  expect(reply.status).toBe(502)
  expect(got).toBeUndefined()
  expect(JSON.stringify(world.lines)).not.toContain('secret-path')
})

test('a placeholder for another authority is refused, recorded, and told', async () => {
  const reply = await askThrough(url, 'other.test:443', secure, { headers: { 'x-key': PLACEHOLDER } })
  expect(reply.status).toBe(403)
  expect(reply.body).toContain('proxy_elsewhere')
  await expect
    .poll(() => world.lines)
    .toMatchObject([{ decision: 'misused', reason: 'elsewhere', authority: 'other.test' }])
  expect(world.misused).toEqual([held])
})

test.each([
  ['in one piece', (body: string) => [body]],
  ['across pieces', (body: string) => [body.slice(0, 30), body.slice(30)]],
])(
  'a placeholder in a body for another authority is refused before anything goes on: %s',
  async (_how, cut) => {
    const socket = await secureThrough(url, 'other.test:443', secure)
    const body = `{"leak": "${PLACEHOLDER}", "more": 1}`
    socket.write(`POST / HTTP/1.1\r\nHost: other.test\r\nContent-Length: ${body.length}\r\n\r\n`)
    for (const piece of cut(body)) {
      socket.write(piece)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    expect(String(chunk)).toMatch(/^HTTP\/1.1 403 /)
    await expect.poll(() => world.misused).toEqual([held])
    socket.destroy()
  },
)

test('answers Expect for a body that it inspects', async () => {
  const socket = await secureThrough(url, 'other.test:443', secure)
  socket.write('POST / HTTP/1.1\r\nHost: other.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n')
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  expect(String(chunk)).toMatch(/^HTTP\/1.1 100 /)
  socket.destroy()
})

test('a tunnel by name is not opened', async () => {
  answer = (_request, response) => response.end('pinned')
  const { reply, socket } = await connectThrough(url, 'pinned.test:443')
  expect(reply).toMatch(/^HTTP\/1.1 200 /)
  const { connect: connectTls } = await import('node:tls')
  const inner = connectTls({ socket, ca: certificates.server.ca, servername: 'localhost' })
  inner.on('error', () => undefined)
  await once(inner, 'secureConnect')
  expect((await ask({ createConnection: () => inner, host: 'localhost' })).body).toBe('pinned')
  inner.end()
  await expect
    .poll(() => world.lines)
    .toContainEqual(expect.objectContaining({ protocol: 'tunnel', decision: 'tunnelled', method: null }))
})

test.each([
  ['169.254.169.254:443', 'address_not_allowed'],
  ['meta.test:443', 'address_not_allowed'],
  ['127.0.0.1:443', 'address_not_allowed'],
  ['[::1]:443', 'address_not_allowed'],
  ['[::ffff:127.0.0.1]:443', 'address_not_allowed'],
  ['[::ffff:a9fe:a9fe]:443', 'address_not_allowed'],
  ['2130706433:443', 'address_not_allowed'],
  ['0x7f.1:443', 'address_not_allowed'],
  ['10.0.0.1:443', 'address_not_allowed'],
  ['100.64.0.1:443', 'address_not_allowed'],
  ['[fd00:ec2::254]:443', 'address_not_allowed'],
  ['rebound.test:443', 'address_not_allowed'],
  ['inside.test:443', 'address_not_allowed'],
  ['mayfly.test:443', 'own_server'],
  ['MAYFLY.test.:443', 'own_server'],
  ['other.test:22', 'port_not_allowed'],
  ['other.test:8443', 'port_not_allowed'],
  ['other.test', 'bad_target'],
  ['other.test:443:443', 'bad_target'],
  ['user@other.test:443', 'bad_target'],
  ['/path', 'bad_target'],
])('CONNECT %s is refused', async (target, reason) => {
  const { reply, socket } = await connectThrough(url, target)
  socket.destroy()
  expect(reply).toMatch(/^HTTP\/1.1 4\d\d /)
  if (reply.includes('proxy_bad_framing')) return
  expect(reply).toContain(`"proxy_${reason}"`)
  // Many clients show nothing else of it.
  expect(reply.split('\r\n')[0]).toContain(` (mayfly: proxy_${reason})`)
})

test('a program that does not trust the certificate of the run is told of, once for each host', async () => {
  const target = `https://api.test:${ports.modern}/`
  for (let tries = 0; tries < 2; tries += 1) {
    const { code, stderr } = await run(
      ['curl', '-sS', '-x', url, '--noproxy', '', '--cacert', certificates.ca, target],
      { PATH: process.env['PATH'] ?? '' },
    )
    expect([code, stderr]).toEqual([60, expect.stringContaining('certificate')])
  }
  const told = () => world.warnings.filter((one) => one.includes('does not trust'))
  // The alert may be read after curl has gone.
  await vi.waitFor(() => expect(told()).toEqual([expect.stringContaining(' for api.test. ')]), 30_000)
})

test('the name in the TLS handshake must be that of CONNECT', async () => {
  const wrong = await askThrough(
    url,
    `api.test:${ports.modern}`,
    { ca: world.certificate, servername: 'api.test' },
    { headers: { ...BEARER, host: 'other.test' } },
  )
  expect(wrong.status).toBe(421)
  const { connect: connectTls } = await import('node:tls')
  for (const servername of ['other.test', undefined]) {
    const { socket } = await connectThrough(url, `api.test:${ports.modern}`)
    const inner = connectTls({
      socket,
      ca: world.certificate,
      ...(servername && { servername }),
      checkServerIdentity: () => undefined,
    })
    inner.on('error', () => undefined)
    await once(inner, 'secureConnect')
    const reply = await ask({
      createConnection: () => inner,
      host: 'api.test',
      headers: { ...BEARER, host: `api.test:${ports.modern}` },
    })
    expect(reply.status).toBe(421)
    expect(reply.body).toContain('proxy_wrong_sni')
    inner.destroy()
  }
})

test.each([
  ['http://other.test/', 'plain_others'],
  ['http://api.test/', 'plain_http|plain_others|elsewhere'],
  ['https://api.test/', 'bad_target'],
  ['/', 'bad_target'],
  ['http://127.0.0.1/', 'plain_others'],
])('plain HTTP for %s gets no secret', async (path, reason) => {
  const host = /\/\/([^/]+)/.exec(path)?.[1] ?? 'x'
  const reply = await ask({
    port: Number(new URL(url).port),
    path,
    headers: { host, 'proxy-authorization': loginOf(url), ...BEARER },
  })
  expect(reply.status).toBeGreaterThanOrEqual(400)
  expect(reply.body).toMatch(new RegExp(`proxy_(${reason}|elsewhere)`))
})

test('slow heads are not waited for', async () => {
  const port = Number(new URL(url).port)
  const text = await sendRaw(port, 'CONNECT other.test:443 HTTP/1.1\r\nHost: o')
  expect(text).toMatch(/^HTTP\/1.1 4\d\d /)
})

test('`refuse` opens no authority of no backend', async () => {
  const strict = trafficWorld([held], { others: 'refuse' })
  const { url: own } = await strict.traffic.openForward()
  const { reply, socket } = await connectThrough(own, 'other.test:443')
  ;(socket as Socket).destroy()
  expect(reply).toContain('proxy_others_refused')
  await strict.close()
})
