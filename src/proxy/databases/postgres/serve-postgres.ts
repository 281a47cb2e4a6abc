import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { farewell } from '../copy.ts'
import { loginOf } from '../login-of.ts'
import type { Protocol, Visit } from '../parts.ts'
import { readExactly } from '../read-exactly.ts'
import { badStartup, Refusal } from '../refusal.ts'
import { isSameText } from '../same-text.ts'
import { ServerError } from '../server-error.ts'
import { withChild, withUpstream } from '../turns.ts'
import { logIn, secureConnection } from './log-in.ts'
import { errorMessage, int32, type Message, message, readMessage } from './messages.ts'
import { type Asked, cancelRequest, decideStartup, negotiation, readAsked } from './startup.ts'

/** Which session of ours a key ends, by process and secret, in hex; the key of the server stays here. */
type Keys = Map<string, Buffer>

const CLEARTEXT = 3
const MAX_PASSWORD = 4_096

export function servePostgres(): Protocol {
  const keys: Keys = new Map()
  return async (visit) => {
    try {
      const asked = await withChild(visit, (signal) => readAsked(visit.child, signal))
      if (asked.kind === 'cancel') await cancel(visit, keys.get(asked.key))
      else await openSession(visit, asked, keys)
    } catch (error) {
      if (error instanceof Refusal) await farewell(visit.child, errorMessage(error))
      if (error instanceof ServerError) await farewell(visit.child, error.bytes)
      throw error
    }
  }
}

async function openSession(visit: Visit, asked: Asked & { kind: 'startup' }, keys: Keys): Promise<void> {
  const { child } = visit
  const negotiated = negotiation(asked)
  if (negotiated.length > 0) child.write(negotiated)
  if (visit.provesItself) await requirePlaceholder(visit)
  const live = visit.admit()
  const { username, password } = loginOf(live)
  const wanted = decideStartup(asked.parameters, {
    user: username,
    database: live.open.get('database') ?? '',
    databases: visit.use.databases,
  })
  const { upstream, greeting } = await withUpstream(visit, async (signal) => {
    const socket = await connectUpstream(visit, signal)
    visit.decide('injected')
    const isVerified = visit.use.tls === 'verify-full'
    await logIn(socket, { wanted, password, isVerified, signal })
    return { upstream: socket, greeting: await readGreeting(socket, signal) }
  })
  const key = greeting.key === undefined ? undefined : remember(keys, greeting.key)
  child.write(
    Buffer.concat([message('R', int32(0)), ...greeting.messages, ...(key === undefined ? [] : [key.told])]),
  )
  if (greeting.last !== undefined) child.write(greeting.last)
  try {
    await visit.join(upstream)
  } finally {
    if (key !== undefined) keys.delete(key.name)
  }
}

async function requirePlaceholder(visit: Visit): Promise<void> {
  const { child, placeholder } = visit
  child.write(message('R', int32(CLEARTEXT)))
  const { type, body } = await withChild(visit, (signal) =>
    readMessage(child, signal, { most: MAX_PASSWORD, refuse: badStartup }),
  )
  if (type !== 'p' || body.at(-1) !== 0) throw badStartup('it sends no password')
  const password = body.subarray(0, -1)
  const isIt = (one: string) => isSameText(password, one)
  if (!isIt(placeholder)) throw visit.refuseLogin(isIt)
}

async function connectUpstream(visit: Visit, signal: AbortSignal): Promise<Socket> {
  const raw = await visit.connect({ givesLogin: false })
  return visit.use.tls === 'disable' ? raw : secureConnection(raw, signal, visit.secure)
}

interface Greeting {
  readonly messages: readonly Buffer[]
  /** BackendKeyData: process and secret. */
  readonly key?: Buffer
  /** The message that ended it, where it was not the key. */
  readonly last?: Buffer
}

/** What follows a login until the key; the rest is only copied. */
async function readGreeting(socket: Socket, signal: AbortSignal): Promise<Greeting> {
  const messages: Buffer[] = []
  for (;;) {
    const { type, body }: Message = await readMessage(socket, signal)
    if (type === 'K' && body.length === 8) return { messages, key: body }
    const bytes = message(type, body)
    if (type === 'E') throw new ServerError(bytes)
    if (type === 'Z' || type === 'K') return { messages, last: bytes }
    messages.push(bytes)
  }
}

/** The child gets the number of the process, by which clients know their own notifications, and a secret of ours. */
function remember(keys: Keys, upstreamKey: Buffer): { name: string; told: Buffer } {
  const own = Buffer.concat([upstreamKey.subarray(0, 4), randomBytes(4)])
  const name = own.toString('hex')
  keys.set(name, upstreamKey)
  return { name, told: message('K', own) }
}

/** As the server does, it answers nothing, and closes once the request has arrived. */
async function cancel(visit: Visit, key: Buffer | undefined): Promise<void> {
  if (key === undefined) {
    visit.child.destroy()
    return
  }
  visit.admit()
  visit.decide('forwarded')
  await withUpstream(visit, async (signal) => {
    const upstream = await connectUpstream(visit, signal)
    upstream.write(cancelRequest(key))
    // It says nothing and closes.
    await readExactly(upstream, 1, signal).catch(() => undefined)
  }).catch(() => undefined)
  visit.child.end()
}
