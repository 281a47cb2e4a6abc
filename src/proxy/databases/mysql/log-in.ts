import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { DatabaseUse } from '../../../domain/use.ts'
import { noUpstreamTls, upstreamProtocol } from '../refusal.ts'
import { ServerError } from '../server-error.ts'
import { CACHING_SHA2, type Method, methodOf } from './answers.ts'
import {
  Flag,
  type Greeting,
  NATIVE,
  parseGreeting,
  type Response,
  responseFor,
  tlsRequest,
} from './handshake.ts'
import { cursorOf, packet, readPacket } from './packets.ts'

/** First bytes of answers to a login ("Generic Response Packets", "Authentication Method Switch"). */
const OK = 0x00
export const MORE = 0x01
const SWITCH = 0xfe
const ERROR = 0xff

/** Throws `Refusal` and `ServerError`, which a server sends in place of a greeting, too. */
export async function readGreeting(raw: Socket, signal: AbortSignal): Promise<Greeting> {
  const { payload } = await readPacket(raw, signal)
  if (payload[0] === ERROR) throw new ServerError(payload)
  return parseGreeting(payload)
}

export interface LogInOptions {
  readonly use: DatabaseUse
  readonly greeting: Greeting
  /** Of the child. */
  readonly response: Response
  readonly username: string
  readonly password: string
  readonly signal: AbortSignal
  readonly secure: (raw: Socket) => Promise<Socket>
}

/** Returns the connection and the server's last word, once it has accepted the login. Throws `Refusal` and `ServerError`. */
export async function logIn(
  raw: Socket,
  { use, greeting, response, username, password, signal, secure }: LogInOptions,
): Promise<{ upstream: Socket; accepted: Buffer }> {
  const { database } = response
  let sequence = 1
  let upstream = raw
  if (use.tls !== 'disable') {
    if ((greeting.flags & Flag.ssl) === 0) throw noUpstreamTls()
    if (raw.readableLength > 0) throw upstreamProtocol('bytes before TLS')
    raw.write(packet(sequence, tlsRequest(greeting, response, database)))
    sequence += 1
    upstream = await secure(raw)
  }
  const options = {
    password,
    isEncrypted: upstream instanceof TLSSocket,
    isNear: use.tls === 'disable' && use.local,
  }
  let { name, method } = firstMethod(greeting.method, options)
  const answer = method.first(greeting.scramble)
  const login = { user: username, database, answer, method: name }
  upstream.write(packet(sequence, responseFor(greeting, response, login, upstream !== raw)))
  for (let hasSwitched = false; ; ) {
    const received = await readPacket(upstream, signal)
    sequence = received.sequence + 1
    const { payload } = received
    if (payload[0] === ERROR) throw new ServerError(payload)
    if (payload[0] === OK) return { upstream, accepted: payload }
    if (payload[0] === SWITCH && payload.length > 1 && !hasSwitched) {
      hasSwitched = true
      const asked = parseSwitch(payload)
      ;({ name, method } = { name: asked.name, method: methodOf(asked.name, options) })
      upstream.write(packet(sequence, method.first(asked.challenge)))
      continue
    }
    const said = payload[0] === MORE ? payload.subarray(1) : payload
    if (payload[0] === SWITCH) throw upstreamProtocol('a second change of the login method')
    const next = await method.next(said)
    if (next !== undefined) upstream.write(packet(sequence, next))
  }
}

/** The server names another one if the account has another: with one that we do not have, we begin with the oldest. */
function firstMethod(
  name: string,
  options: Parameters<typeof methodOf>[1],
): { name: string; method: Method } {
  const isKnown = name === NATIVE || name === CACHING_SHA2
  const first = isKnown ? name : NATIVE
  return { name: first, method: methodOf(first, options) }
}

function parseSwitch(payload: Buffer): { name: string; challenge: Buffer } {
  const cursor = cursorOf(payload.subarray(1), upstreamProtocol)
  const name = cursor.text().toString('latin1')
  const challenge = cursor.bytes(cursor.left)
  // Most methods end it with a zero byte.
  const isEnded = challenge.length % 2 === 1 && challenge.at(-1) === 0
  return { name, challenge: isEnded ? challenge.subarray(0, -1) : challenge }
}
