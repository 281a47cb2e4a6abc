import { constants, createHash, generateKeyPairSync, privateDecrypt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'

export interface CachingServer extends AsyncDisposable {
  readonly port: number
  /** How each login was proven. */
  readonly logins: string[]
  /** All that was sent to it in clear. */
  inClear(): string
}

interface Options {
  readonly password: string
  /** Of its certificate; absent: without TLS. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Whether it knows the hash from an earlier login. */
  readonly isCached?: boolean
  /** The method that its greeting names; another one than the account's makes it ask for a change. */
  readonly greets?: string
}

const sha256 = (...parts: readonly (Buffer | string)[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
const xor = (one: Buffer, other: Buffer) =>
  Buffer.from(one.map((byte, at) => byte ^ (other[at % other.length] ?? 0)))
const SCRAMBLE = Buffer.from('abcdefghijklmnopqrst')
const METHOD = 'caching_sha2_password'
const SSL = 0x800
const OK = Buffer.from([0, 0, 0, 2, 0, 0, 0])

/**
 * The login of MySQL 8 as its manual describes it ("Caching_sha2_password information"), for which no server is installed here. It
 * answers each command with OK.
 */
export async function startCachingServer({
  password,
  tls,
  isCached = false,
  greets = METHOD,
}: Options): Promise<CachingServer> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = publicKey.export({ type: 'spki', format: 'pem' })
  const logins: string[] = []
  const clear: Buffer[] = []
  const flags = 0x81bff7df | (tls === undefined ? 0 : SSL)

  async function serve(raw: Socket): Promise<void> {
    let socket = raw
    const read = async () => {
      const head = await take(socket, 4)
      const payload = await take(socket, head.readUIntLE(0, 3))
      if (socket === raw) clear.push(payload)
      return { sequence: (head[3] ?? 0) + 1, payload }
    }
    const send = (sequence: number, ...parts: readonly (Buffer | string)[]) => {
      const payload = Buffer.concat(parts.map((part) => Buffer.from(part)))
      const head = Buffer.alloc(4)
      head.writeUIntLE(payload.length, 0, 3)
      head[3] = sequence
      socket.write(Buffer.concat([head, payload]))
    }
    send(0, greeting(flags, greets))
    let { sequence, payload } = await read()
    if (payload.length === 32 && tls !== undefined) {
      const secured = new TLSSocket(raw, { isServer: true, secureContext: createSecureContext(tls) })
      secured.on('error', () => undefined)
      socket = secured
      ;({ sequence, payload } = await read())
    }
    let answer = answerIn(payload)
    if (greets !== METHOD) {
      send(sequence, Buffer.of(0xfe), `${METHOD}\0`, SCRAMBLE, Buffer.alloc(1))
      ;({ sequence, payload: answer } = await read())
    }
    const known = sha256(sha256(sha256(password)), SCRAMBLE)
    const isRight = answer.equals(xor(sha256(password), known))
    if (isCached && isRight) {
      send(sequence, Buffer.of(1, 3))
      sequence += 1
      logins.push('fast')
    } else {
      send(sequence, Buffer.of(1, 4))
      ;({ sequence, payload } = await read())
      let how = 'tls'
      let given = payload
      if (payload.equals(Buffer.of(2))) {
        how = 'rsa'
        send(sequence, Buffer.of(1), pem)
        ;({ sequence, payload } = await read())
        const decrypted = privateDecrypt(
          { key: privateKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha1' },
          payload,
        )
        given = xor(decrypted, SCRAMBLE)
      }
      if (given.toString() !== `${password}\0`)
        return send(sequence, Buffer.of(0xff, 0x15, 0x04), '#28000Access denied')
      logins.push(how)
    }
    send(sequence, OK)
    for (;;) send((await read()).sequence, OK)
  }

  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    serve(socket).catch(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    ...{ port: (server.address() as { port: number }).port, logins },
    inClear: () => Buffer.concat(clear).toString('latin1'),
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}

function greeting(flags: number, method: string): Buffer {
  const bytes = Buffer.alloc(11)
  bytes.writeUInt16LE(flags & 0xffff, 0)
  bytes[2] = 0xff
  bytes.writeUInt16LE(2, 3)
  bytes.writeUInt16LE(flags >>> 16, 5)
  bytes[7] = 21
  return Buffer.concat([
    Buffer.from('\x0a8.4.0\0\x07\0\0\0'),
    SCRAMBLE.subarray(0, 8),
    Buffer.alloc(1),
    bytes.subarray(0, 8),
    Buffer.alloc(10),
    SCRAMBLE.subarray(8),
    Buffer.from(`\0${method}\0`),
  ])
}

/** Of a response whose answer has its length in one byte. */
function answerIn(payload: Buffer): Buffer {
  const at = payload.indexOf(0, 32) + 1
  return payload.subarray(at + 1, at + 1 + (payload[at] ?? 0))
}

async function take(socket: Socket, count: number): Promise<Buffer> {
  for (;;) {
    const bytes: Buffer | null = count === 0 ? Buffer.alloc(0) : socket.read(count)
    if (bytes !== null) return bytes
    await Promise.race([
      once(socket, 'readable'),
      once(socket, 'close').then(() => Promise.reject(new Error('closed'))),
    ])
  }
}
