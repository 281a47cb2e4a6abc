import { randomBytes } from 'node:crypto'
import { createServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createRules } from '../../src/proxy/rules/decide.ts'
import { openFrameSearch } from '../../src/proxy/traffic/search-frames.ts'
import { secureThrough } from './traffic-clients.ts'
import {
  heldFake,
  httpUse,
  leadingTo,
  listening,
  PLACEHOLDER,
  type TrafficWorld,
  testCertificates,
  trafficWorld,
} from './traffic-world.ts'

const certificates = testCertificates('other.test')
const held = heldFake('api', [httpUse('https://api.test')])
const { search } = createRules([held])
const upstream = createServer(certificates.server)
let world: TrafficWorld
let url: string
let arrived = ''
/** What the upstream answers besides 101. */
let more = ''

const usual = getCACertificates('default')

beforeAll(async () => {
  setDefaultCACertificates([...usual, certificates.server.ca])
  upstream.on('upgrade', (_request, socket: Duplex) => {
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      arrived += chunk.toString('latin1')
      socket.write(chunk)
    })
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${more}\r\n`,
    )
  })
  const port = await listening(upstream)
  world = trafficWorld([held], {
    names: { 'other.test': ['203.0.113.5'] },
    connect: leadingTo({ '203.0.113.5': port }),
  })
  url = (await world.traffic.openForward()).url
})
beforeEach(() => {
  arrived = ''
  more = ''
  world.lines.length = 0
  world.misused.length = 0
})
afterAll(async () => {
  setDefaultCACertificates(usual)
  await world.close()
  upstream.close()
  certificates.remove()
})

interface Frame {
  /** First byte: FIN and the opcode. */
  readonly first?: number
  readonly mask?: Buffer | null
}

const TEXT = 0x81
const PING = 0x89

/** As a client sends it (RFC 6455 §5.2). */
function frame(text: string | Buffer, { first = TEXT, mask = randomBytes(4) }: Frame = {}): Buffer {
  const payload = Buffer.from(text)
  const flag = mask === null ? 0 : 0x80
  const head = [first]
  if (payload.length < 126) head.push(flag | payload.length)
  else if (payload.length < 65_536) head.push(flag | 126, payload.length >> 8, payload.length & 255)
  else head.push(flag | 127, 0, 0, 0, 0, ...[24, 16, 8, 0].map((by) => (payload.length >> by) & 255))
  const masked = payload.map((byte, at) => byte ^ (mask?.[at % 4] ?? 0))
  return Buffer.concat([Buffer.from(head), mask ?? Buffer.alloc(0), masked])
}

const half = PLACEHOLDER.length / 2
const [one, other] = [PLACEHOLDER.slice(0, half), PLACEHOLDER.slice(half)]
const HOSTILE: readonly (readonly [string, Buffer])[] = [
  ['one frame', frame(`{"key":"${PLACEHOLDER}"}`)],
  ['base64', frame(Buffer.from(`x:${PLACEHOLDER}`).toString('base64'))],
  ['a binary frame', frame(PLACEHOLDER, { first: 0x82 })],
  ['a ping', frame(PLACEHOLDER, { first: PING })],
  ['a long frame', frame(`${'x'.repeat(1_000)}${PLACEHOLDER}`)],
  ['a longer frame', frame(`${'x'.repeat(100_000)}${PLACEHOLDER}`)],
  ['a frame without a mask', frame(PLACEHOLDER, { mask: null })],
  ['no frame at all', Buffer.from(`GET /${PLACEHOLDER}`)],
  [
    'two frames of a message, with a ping between them',
    Buffer.concat([frame(one, { first: 0x01 }), frame('', { first: PING }), frame(other, { first: 0x80 })]),
  ],
]

test.each(HOSTILE)('a placeholder in %s is found, in pieces of any size', (_what, bytes) => {
  for (const size of [1, 7, bytes.length]) {
    const open = openFrameSearch(search)
    const pushed = []
    for (let at = 0; at < bytes.length; at += size) pushed.push(open.push(bytes.subarray(at, at + size)))
    expect(pushed.find((found) => found !== undefined && found !== 'unreadable')).toMatchObject({ held })
  }
})

test('what holds none passes', () => {
  const open = openFrameSearch(search)
  for (const text of ['', 'x', 'x'.repeat(70_000), one])
    for (const byte of frame(text)) expect(open.push(Buffer.from([byte]))).toBeUndefined()
})

test.each([
  ['compressed', frame('x', { first: 0xc1 })],
  ['longer than any', Buffer.from([TEXT, 0xff, ...Array<number>(12).fill(255)])],
])('a frame that is %s cannot be searched', (_what, bytes) => {
  expect(openFrameSearch(search).push(bytes)).toBe('unreadable')
})

async function openSocket(first: Buffer = Buffer.alloc(0), protocol = 'websocket') {
  const socket = await secureThrough(url, 'other.test:443', { ca: world.certificate })
  const got = { text: '' }
  socket.on('data', (chunk: Buffer) => {
    got.text += chunk.toString('latin1')
  })
  const lines = ['GET /ws HTTP/1.1', 'Host: other.test', 'Connection: Upgrade', `Upgrade: ${protocol}`]
  socket.write(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), first]))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  return { socket, got, closed }
}

test.each(['websocket', 'spdy/3.1'])(
  'frames of %s to another authority pass, and come back',
  async (protocol) => {
    const { socket, got } = await openSocket(frame('early'), protocol)
    socket.write(frame('hello'))
    const whole = Buffer.from(frame('last')).toString('latin1')
    await expect.poll(() => got.text).toContain('HTTP/1.1 101')
    socket.write(whole, 'latin1')
    await expect.poll(() => got.text).toContain(whole)
    expect(arrived).toContain(whole)
    socket.destroy()
    await expect.poll(() => world.lines).toMatchObject([{ status: 101, decision: 'forwarded', reason: null }])
  },
)

test.each([
  ['behind the request', 'early'],
  ['later', 'late'],
])('a placeholder in a frame to another authority ends both, and is an alarm: %s', async (_when, when) => {
  const bytes = frame(`{"key":"${PLACEHOLDER}"}`)
  const { socket, got, closed } = await openSocket(when === 'early' ? bytes : undefined)
  if (when === 'late') {
    await expect.poll(() => got.text).toContain('HTTP/1.1 101')
    socket.write(bytes)
  }
  await closed
  await expect
    .poll(() => world.lines)
    .toMatchObject([{ decision: 'misused', reason: 'elsewhere', placeholder: 'api', backend: 'api' }])
  expect(world.misused).toEqual([held])
  expect(arrived).toBe('')
})

test('a compressed frame ends both: the extension that an upstream claims was not asked for', async () => {
  more = 'Sec-WebSocket-Extensions: permessage-deflate\r\n'
  const { socket, got, closed } = await openSocket()
  await expect.poll(() => got.text).toContain('HTTP/1.1 101')
  expect(got.text).not.toContain('permessage')
  socket.write(frame('x', { first: 0xc1 }))
  await closed
  await expect.poll(() => world.lines).toMatchObject([{ decision: 'forwarded', reason: 'bad_framing' }])
  expect(world.misused).toEqual([])
  expect(arrived).toBe('')
})
