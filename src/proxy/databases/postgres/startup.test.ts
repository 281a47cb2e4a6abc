import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { int32, text, untyped } from './messages.ts'
import { type Asked, decideStartup, negotiation, readAsked } from './startup.ts'

const signal = AbortSignal.timeout(60_000)

async function read(bytes: Buffer, pieces = [bytes]): Promise<{ asked: Asked; said: string }> {
  const socket = new PassThrough()
  const said: Buffer[] = []
  const write = socket.write.bind(socket)
  Object.assign(socket, { write: (piece: Buffer) => said.push(piece) })
  for (const piece of pieces) write(piece)
  socket.end()
  return { asked: await readAsked(socket as unknown as Socket, signal), said: Buffer.concat(said).toString() }
}

const startup = (version: number, ...texts: string[]) =>
  untyped(int32(version), ...texts.map(text), Buffer.alloc(1))
const V3 = 3 << 16
const SSL = untyped(int32((1234 << 16) | 5679))
const GSS = untyped(int32((1234 << 16) | 5680))

describe('the first packet', () => {
  test('is read with what was asked before it, also byte by byte', async () => {
    const bytes = Buffer.concat([GSS, SSL, startup(V3, 'user', 'a', 'database', 'b')])
    for (const pieces of [[bytes], [...bytes].map((byte) => Buffer.of(byte))]) {
      const { asked, said } = await read(bytes, pieces)
      expect(said).toBe('NN')
      expect(asked).toEqual({
        kind: 'startup',
        minor: 0,
        parameters: new Map(Object.entries({ user: 'a', database: 'b' })),
      })
    }
  })

  test.each([
    ['a length below its own', Buffer.from([0, 0, 0, 7, 0, 3, 0, 0])],
    ['a length of 4 GB', Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 3, 0, 0])],
    ['a length of 10,001', Buffer.concat([int32(10_001), Buffer.alloc(10_000)])],
    ['version 2', startup(2 << 16, 'user', 'a')],
    ['version 4', startup(4 << 16, 'user', 'a')],
    ['a TLS greeting', Buffer.from('16030100f8010000f40303', 'hex')],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['two questions for TLS', Buffer.concat([SSL, SSL, startup(V3)])],
    ['a question for TLS with more in it', untyped(int32((1234 << 16) | 5679), Buffer.from('more'))],
    ['a name without a value', untyped(int32(V3), text('user'))],
    ['no end', untyped(int32(V3), text('user'), Buffer.from('a'))],
    ['bytes after its end', untyped(int32(V3), text('user'), text('a'), Buffer.alloc(1), text('x'))],
    ['a name twice', startup(V3, 'user', 'a', 'user', 'b')],
    ['no UTF-8', untyped(int32(V3), text('user'), Buffer.from([0xc3, 0x28, 0]), Buffer.alloc(1))],
    ['too many parameters', startup(V3, ...Array.from({ length: 202 }, (_, n) => `n${n}`))],
    ['a short request to cancel', untyped(int32((1234 << 16) | 5678), Buffer.alloc(7))],
    ['a long request to cancel', untyped(int32((1234 << 16) | 5678), Buffer.alloc(9))],
  ])('is refused with %s', async (_, bytes) => {
    await expect(read(bytes)).rejects.toMatchObject({ code: 'bad_startup' })
  })

  test('that never ends is lost with its connection', async () => {
    const bytes = startup(V3, 'user', 'a')
    for (let end = 0; end < bytes.length; end += 1) {
      await expect(read(bytes.subarray(0, end))).rejects.toMatchObject({ name: 'ConnectionLost' })
    }
  })

  test('is a startup, a request to cancel, or refused, whatever it is', async () => {
    const packet = fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
      fc.array(fc.string({ maxLength: 20 }), { maxLength: 8 }).map((texts) => startup(V3, ...texts)),
      fc.uint8Array({ maxLength: 40 }).map((bytes) => untyped(int32(V3), Buffer.from(bytes))),
    )
    await fc.assert(
      fc.asyncProperty(packet, async (bytes) => {
        const result = await read(bytes).catch((error: Error) => error.name)
        if (typeof result === 'string') expect(result).toMatch(/^(Refusal|ConnectionLost)$/)
        else expect(result.asked.kind).toMatch(/startup|cancel/)
      }),
      { numRuns: 1_000 },
    )
  })
})

test('a client of a newer version, or with extensions, gets 3.0 without them', () => {
  const asked = (minor: number, names: string[]) => ({
    ...({ kind: 'startup', minor } as const),
    parameters: new Map(names.map((name) => [name, 'x'])),
  })
  expect(negotiation(asked(0, ['user']))).toHaveLength(0)
  const told = negotiation(asked(2, ['user', '_pq_.command_tag']))
  expect(told.toString('latin1')).toBe('v\0\0\0\x1d\0\x03\0\0\0\0\0\x01_pq_.command_tag\0')
})

test('what is asked for upstream has our user, and neither extensions nor replication', () => {
  const parameters = new Map(
    Object.entries({ user: 'root', database: 'x', replication: 'off', '_pq_.a': 'b', TimeZone: 'UTC' }),
  )
  expect(decideStartup(parameters, { user: 'mf', database: 'app' })).toEqual({
    user: 'mf',
    database: 'x',
    parameters: new Map([['TimeZone', 'UTC']]),
  })
})
