import { once } from 'node:events'
import { createServer as createPlain } from 'node:http'
import { connect, createSecureServer, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { AS_RECEIVED } from '../../src/proxy/traffic/flat.ts'
import { BEARER } from './attacks-world.ts'
import { secureThrough, textOf } from './traffic-clients.ts'
import { heldFake, httpUse, listening, testCertificates, trafficWorld } from './traffic-world.ts'

/** Headers that Node does not write over HTTP/2 by itself, and throws for: one side must not end the proxy by them. */
const UNWRITABLE = 'Etag: a\r\nEtag: b\r\nHTTP2-Settings: x\r\n'

test('hints, a head and trailers with what Node does not write go on without it', async () => {
  const upstream = createPlain((_request, response) => {
    const head = `HTTP/1.1 200 OK\r\n${UNWRITABLE}Transfer-Encoding: chunked\r\n\r\n`
    const hint = `HTTP/1.1 103 Early Hints\r\n${UNWRITABLE}\r\n`
    response.socket?.write(`${hint}${head}2\r\nok\r\n0\r\n${UNWRITABLE}\r\n`)
  })
  const use = httpUse(`http://127.0.0.1:${await listening(upstream)}`)
  const held = heldFake('api', [use])
  const world = trafficWorld([held], { idleMs: 2_000 })
  const { url } = await world.traffic.openSite(held, use, { tls: true })
  const client = connect(url, { ca: world.certificate })
  const stream = client.request({ ':path': '/', ...BEARER })
  const received: string[] = []
  for (const event of ['headers', 'response', 'trailers'])
    stream.on(event, (_headers: unknown, _flags: unknown, raw: string[]) => {
      received.push(raw.join(' ').replace(/^:status \d+ /, ''))
    })
  expect(await textOf(stream)).toBe('ok')
  expect(received).toEqual(Array(3).fill('etag a etag b'))
  client.destroy()
  await world.close()
  upstream.closeAllConnections()
  upstream.close()
})

test('trailers of a request go on as they came', async () => {
  const certificates = testCertificates('api.test')
  const { cert, key, ca } = certificates.server
  const { promise: received, resolve } = Promise.withResolvers<unknown>()
  const upstream = createSecureServer({ cert, key })
  upstream.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined)
    stream.on('trailers', (_headers, _flags, ...[raw]: unknown[]) => resolve(raw))
    stream.resume().on('end', () => stream.respond({ ':status': 204 }, { endStream: true }))
  })
  await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done))
  const authority = `api.test:${(upstream.address() as AddressInfo).port}`
  const world = trafficWorld([heldFake('api', [httpUse(`https://${authority}`, { ca })])])
  const { url } = await world.traffic.openForward()
  const socket = await secureThrough(url, authority, { ca: world.certificate, alpn: ['h2'] })
  const client = connect(`https://${authority}`, { createConnection: () => socket, ...AS_RECEIVED })
  const head = { ':path': '/', ':method': 'POST', trailer: 'etag', ...BEARER }
  const stream = client.request(head, { waitForTrailers: true })
  const twice: OutgoingHttpHeaders = { ['etag' as string]: ['a', 'b'] }
  stream.on('wantTrailers', () => stream.sendTrailers(twice))
  stream.end('body')
  const [headers] = await once(stream, 'response')
  expect(headers[':status']).toBe(204)
  expect(await received).toEqual(['etag', 'a', 'etag', 'b'])
  client.destroy()
  await world.close()
  upstream.close()
  certificates.remove()
})
