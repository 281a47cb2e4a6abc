import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { readExactly } from '../read-exactly.ts'
import { noUpstreamTls, Refusal, upstreamProtocol } from '../refusal.ts'
import { ServerError } from '../server-error.ts'
import { int32, type Message, message, readMessage, text } from './messages.ts'
import { createScram, type Scram } from './scram.ts'
import { sslRequest, startupPacket, type Wanted } from './startup.ts'

/** Asks for TLS and begins it. Throws `Refusal` where the server has none. */
export async function secureConnection(
  raw: Socket,
  signal: AbortSignal,
  secure: (raw: Socket) => Promise<Socket>,
): Promise<Socket> {
  raw.write(sslRequest())
  const answer = (await readExactly(raw, 1, signal)).toString('latin1')
  // Bytes that arrive before TLS would be taken for protected ones (CVE-2021-23222).
  if (answer === 'S' && raw.readableLength === 0) return secure(raw)
  if (answer === 'S') throw upstreamProtocol('bytes before TLS')
  throw noUpstreamTls()
}

/** `AuthenticationX` (PostgreSQL 18, 54.7). */
const OK = 0
const CLEARTEXT = 3
const MD5 = 5
const SASL = 10
const SASL_CONTINUE = 11
const SASL_FINAL = 12

export interface LogInOptions {
  readonly wanted: Wanted
  readonly password: string
  /** Over TLS that was verified: only there is anything sent from which others could learn the password. */
  readonly isVerified: boolean
  readonly signal: AbortSignal
}

/** Returns once the server has accepted the login. Throws `Refusal` and `ServerError`. */
export async function logIn(socket: Socket, options: LogInOptions): Promise<void> {
  const { wanted, signal } = options
  socket.write(startupPacket(wanted))
  const exchange = createExchange(socket, options)
  for (;;) {
    const received = await readMessage(socket, signal)
    if (received.type === 'E') throw new ServerError(message('E', received.body))
    // A notice before the login says nothing that anybody waits for.
    if (received.type === 'N') continue
    if (received.type !== 'R' || received.body.length < 4) throw upstreamProtocol('an answer to the login')
    if (await exchange(received.body.readUInt32BE(), received)) return
  }
}

function createExchange(socket: Socket, { wanted, password, isVerified }: LogInOptions) {
  let scram: Scram | undefined
  let isProven = true
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.raw : undefined

  return async (kind: number, { body }: Message): Promise<boolean> => {
    const rest = body.subarray(4)
    switch (kind) {
      case OK:
        if (!isProven) throw upstreamProtocol('an end of the login before its proof')
        return true
      case CLEARTEXT:
        if (!isVerified) throw inClear()
        socket.write(message('p', text(password)))
        return false
      case MD5:
        if (!isVerified) throw inClear()
        socket.write(message('p', text(md5Of(wanted.user, password, rest.subarray(0, 4)))))
        return false
      case SASL:
        scram = createScram({ password, mechanisms: rest.toString('latin1').split('\0'), certificate })
        if (scram === undefined) throw unknownMethod()
        isProven = false
        socket.write(message('p', text(scram.mechanism), lengthAnd(scram.first)))
        return false
      case SASL_CONTINUE:
        if (scram === undefined) throw upstreamProtocol('an answer to the login')
        socket.write(message('p', await scram.answer(rest.toString('utf8'))))
        return false
      case SASL_FINAL:
        if (scram === undefined) throw upstreamProtocol('an answer to the login')
        scram.verify(rest.toString('utf8'))
        isProven = true
        return false
      default:
        throw unknownMethod()
    }
  }
}

function lengthAnd(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([int32(bytes.length), bytes])
}

const md5 = (...parts: readonly (string | Buffer)[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash('md5')).digest('hex')

const md5Of = (user: string, password: string, salt: Buffer) => `md5${md5(md5(password, user), salt)}`

const inClear = () =>
  new Refusal(
    'upstream_login_method',
    'The server asks for the password in a form that others could read.',
    'Use scram-sha-256 in pg_hba.conf, or "tls": "verify-full" on the backend.',
  )

const unknownMethod = () =>
  new Refusal(
    'upstream_login_method',
    'The server asks for a login method that the proxy does not have.',
    'Use scram-sha-256 in pg_hba.conf for the roles of the backend.',
  )
