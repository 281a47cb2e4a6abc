import { Agent, type ClientRequest } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Failure, failureOf } from '../failure.ts'
import type { TrafficParts } from '../parts.ts'
import { ignoreErrors, reset } from '../sockets.ts'
import { type Connected, connectUpstream } from './connect.ts'
import type { Outbound, OutboundEvents, OutRequest } from './outbound.ts'
import { sendByHttp1 } from './outbound-h1.ts'
import { sendByHttp2 } from './outbound-h2.ts'
import { createReach, type Destination } from './reach.ts'

/** Whose connection it is: one of a credential serves no other. Null: requests without a secret. */
export type Owner = string | null

export interface Pools {
  /** Sends it, over HTTP/2 where `http2` and the upstream has it. Throws `Failure` before anything was sent. */
  send(
    to: Destination,
    owner: Owner,
    http2: boolean,
    request: OutRequest,
    on: OutboundEvents,
  ): Promise<Outbound>
  /** Throws `Failure` where it must not be reached. */
  check(to: Destination): Promise<void>
  /** A connection of its own, for what is not a series of requests. */
  open(to: Destination, owner: Owner): Promise<Socket>
  close(): void
}

interface Whose {
  readonly to: Destination
  readonly address: string
  readonly owner: Owner
}

interface Pool {
  readonly key: string
  readonly agent: Agent
  session: Promise<ClientHttp2Session | undefined> | undefined
  sockets: number
}

/** Less than the five seconds after which many servers close a quiet connection. */
const IDLE_MS = 4_000
const MOST_FREE = 64
const WINDOW_BYTES = 1024 * 1024

type PoolParts = Pick<TrafficParts, 'resolver' | 'isLocal' | 'ownServer' | 'cuts' | 'connect'> & {
  readonly connectMs: number
}

export function createPools(parts: PoolParts): Pools {
  const reach = createReach(parts)
  const dialer = createDialer(parts)
  const pools = createPoolTable(dialer.dial)

  return {
    async send(to, owner, http2, request, on) {
      const address = await reach(to)
      const whose = { to, address, owner }
      const pool = pools.poolOf(whose)
      try {
        const session = http2 && to.scheme === 'https' ? await pools.sessionOf(pool, whose) : undefined
        return session === undefined
          ? sendByHttp1(pool.agent, request, on)
          : sendByHttp2(session, { ...request, scheme: to.scheme }, on)
      } catch (error) {
        throw failureOf(error, 'broken')
      }
    },
    async check(to) {
      await reach(to)
    },
    async open(to, owner) {
      return (await dialer.dial({ to, address: await reach(to), owner }, ['http/1.1'])).socket
    },
    close() {
      dialer.close()
      pools.close()
    },
  }
}

type Dial = (whose: Whose, alpn: readonly string[]) => Promise<Connected>

/** Every connection is ended with its credential. */
function createDialer(parts: PoolParts): { readonly dial: Dial; close(): void } {
  const open = new Set<Socket>()
  return {
    dial({ to, address, owner }, alpn) {
      const onSocket = (raw: Socket) => {
        open.add(raw)
        const untrack = owner === null ? undefined : parts.cuts.track(owner, () => reset(raw))
        raw.once('close', () => {
          open.delete(raw)
          untrack?.()
        })
      }
      return connectUpstream(to, address, {
        alpn,
        timeoutMs: parts.connectMs,
        onSocket,
        connect: parts.connect,
      })
    },
    close() {
      for (const raw of open) reset(raw)
    },
  }
}

function createPoolTable(dial: Dial) {
  const pools = new Map<string, Pool>()

  /** Dials for this pool, which is forgotten when its last connection has closed. */
  async function dialFor(pool: Pool, whose: Whose, alpn: readonly string[]): Promise<Connected> {
    pool.sockets += 1
    const forget = () => {
      pool.sockets -= 1
      if (pool.sockets === 0 && pools.get(pool.key) === pool) pools.delete(pool.key)
    }
    try {
      const connected = await dial(whose, alpn)
      connected.socket.once('close', forget)
      return connected
    } catch (error) {
      forget()
      throw error
    }
  }

  function poolOf(whose: Whose): Pool {
    const { to, address, owner } = whose
    const key = `${owner}|${to.is}|${to.scheme}|${to.host}|${to.port}|${address}|${to.ca ?? ''}`
    const known = pools.get(key)
    if (known !== undefined) return known
    const agent = pooling(async () => (await dialFor(pool, whose, ['http/1.1'])).socket)
    const pool: Pool = { key, agent, session: undefined, sockets: 0 }
    pools.set(key, pool)
    return pool
  }

  /** Undefined: the upstream has no HTTP/2. */
  async function sessionOf(pool: Pool, whose: Whose): Promise<ClientHttp2Session | undefined> {
    const known = await pool.session?.catch(() => undefined)
    if (known !== undefined && !known.closed && !known.destroyed) return known
    if (pool.session !== undefined && known === undefined && pool.sockets > 0) return undefined
    const openSession = async () => {
      const { socket, protocol } = await dialFor(pool, whose, ['h2', 'http/1.1'])
      if (protocol === 'h2') return startSession(whose.to, socket)
      reset(socket)
      return undefined
    }
    pool.session = openSession()
    return pool.session
  }

  return {
    poolOf,
    sessionOf,
    close() {
      for (const { agent } of pools.values()) agent.destroy()
      pools.clear()
    },
  }
}

/** Documented methods of Node's agent that its types leave out. */
interface Hooks extends Agent {
  keepSocketAlive(socket: Socket): boolean
  reuseSocket(socket: Socket, request: ClientRequest): void
}

/** An agent whose connections all lead to one place, so that it need not tell them apart. */
function pooling(dial: () => Promise<Socket>): Agent {
  const agent: Hooks = new Agent({ keepAlive: true, maxFreeSockets: MOST_FREE, scheduling: 'lifo' }) as never
  const [keepSocketAlive, reuseSocket] = [agent.keepSocketAlive.bind(agent), agent.reuseSocket.bind(agent)]
  return Object.assign(agent, {
    getName: () => '',
    createConnection: (_options: unknown, done?: (error: Error | null, socket?: Duplex) => void) => {
      dial().then(
        (socket) => done?.(null, socket),
        (error: unknown) => done?.(failureOf(error, 'unreachable')),
      )
      return undefined
    },
    keepSocketAlive: (socket: Socket) => {
      const keeps = keepSocketAlive(socket)
      // The agent destroys a free one then.
      socket.setTimeout(IDLE_MS)
      return keeps
    },
    reuseSocket: (socket: Socket, request: ClientRequest) => {
      reuseSocket(socket, request)
      socket.setTimeout(0)
    },
  })
}

function startSession(to: Destination, socket: Socket): Promise<ClientHttp2Session> {
  const session = connectHttp2(`https://${to.host}:${to.port}`, {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
    maxSessionMemory: 64,
  })
  ignoreErrors(session)
  session.setTimeout(10 * IDLE_MS, () => {
    // Streams have a time of their own.
    if (session.destroyed) return
    session.close()
  })
  return new Promise((resolve, reject) => {
    session.once('close', () => reject(new Failure('unreachable')))
    session.once('remoteSettings', () => {
      if (!session.destroyed) session.setLocalWindowSize(16 * WINDOW_BYTES)
      resolve(session)
    })
  })
}
