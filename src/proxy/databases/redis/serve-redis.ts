import type { Socket } from 'node:net'
import { farewell } from '../copy.ts'
import { loginOf } from '../login-of.ts'
import type { Protocol, Visit } from '../parts.ts'
import { readSome } from '../read-exactly.ts'
import { badStartup, Refusal, type RefusalCode, upstreamProtocol } from '../refusal.ts'
import { isSameText } from '../same-text.ts'
import { ServerError } from '../server-error.ts'
import { withChild, withUpstream } from '../turns.ts'
import { encodeRequest, readRequest } from './requests.ts'
import { type Login, nameOf, passwordIn, translate } from './translate.ts'
import { watchRequests } from './watch-requests.ts'

/** Of requests that are answered before the login. */
const MOST_BEFORE = 100
const MAX_REPLY = 4_096
const OK = '+OK\r\n'
const NO_AUTH = '-NOAUTH Authentication required. Mayfly: log in with the password of REDIS_URL.\r\n'

/** By which clients know what to do (Redis, "RESP simple errors"). */
const PREFIXES: Partial<Record<RefusalCode, string>> = {
  credential_ended: 'NOAUTH',
  no_sign_of_life: 'TRYAGAIN',
  upstream_timeout: 'TRYAGAIN',
  upstream_unreachable: 'TRYAGAIN',
  wrong_placeholder: 'WRONGPASS',
}

export function serveRedis(): Protocol {
  return async (visit) => {
    try {
      await openSession(visit)
    } catch (error) {
      if (error instanceof Refusal) await farewell(visit.child, errorReply(error))
      if (error instanceof ServerError) await farewell(visit.child, error.bytes)
      throw error
    }
  }
}

function errorReply({ code, message, hint }: Refusal): Buffer {
  return Buffer.from(`-${PREFIXES[code] ?? 'ERR'} Mayfly: ${message} ${hint}\r\n`)
}

async function openSession(visit: Visit): Promise<void> {
  const { child, placeholder } = visit
  // A child of the port logs in first, and what it sends behind that waits in its socket.
  const request = visit.provesItself ? await readLogin(visit) : undefined
  if (request === 'quit') return
  const live = visit.admit()
  const login: Login = { ...loginOf(live), placeholder }
  const upstream = await withUpstream(visit, async (signal) => {
    const raw = await visit.connect({ givesLogin: visit.use.tls !== 'verify-full' })
    const socket = visit.use.tls === 'disable' ? raw : await visit.secure(raw)
    visit.decide('injected')
    await logIn(socket, login, signal)
    return socket
  })
  if (request !== undefined && nameOf(request) === 'auth') child.write(OK)
  // The reply to a HELLO is about the server.
  else if (request !== undefined) upstream.write(translate(request, login))
  await visit.join(
    upstream,
    watchRequests((parts) => translate(parts, login)),
  )
}

/** The first request that proves the child to be one; those before it get the answers of a server that asks for a password. */
async function readLogin(visit: Visit): Promise<readonly Buffer[] | 'quit'> {
  const { child, placeholder } = visit
  return withChild(visit, async (signal) => {
    for (let count = 0; count < MOST_BEFORE; count += 1) {
      const request = await readRequest(child, signal)
      if (request.length === 0) continue
      const password = passwordIn(request)
      if (password !== undefined) {
        const isIt = (one: string) => isSameText(password, one)
        if (isIt(placeholder)) return request
        throw visit.refuseLogin(isIt)
      }
      if (nameOf(request) === 'quit') {
        await farewell(child, Buffer.from(OK))
        return 'quit'
      }
      // A web page may send requests to this port, too. As the server does it (networking.c, `securityWarningCommand`).
      if (/^(?:post|host:)$/.test(nameOf(request))) throw badStartup('it speaks HTTP')
      child.write(NO_AUTH)
    }
    throw badStartup('it does not log in')
  })
}

/** A connection whose login failed could be that of another user, so nothing else is sent before. */
async function logIn(socket: Socket, { username, password }: Login, signal: AbortSignal): Promise<void> {
  socket.write(encodeRequest(['AUTH', username, password]))
  let reply = Buffer.alloc(0)
  while (!reply.includes('\n')) {
    if (reply.length > MAX_REPLY) throw upstreamProtocol('a reply to the login')
    reply = Buffer.concat([reply, await readSome(socket, signal)])
  }
  if (reply[0] === 0x2d) throw new ServerError(reply)
  if (reply.toString('latin1') !== OK) throw upstreamProtocol('a reply to the login')
}
