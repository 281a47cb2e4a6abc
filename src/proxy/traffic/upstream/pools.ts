import { Agent, type ClientRequest } from 'node:http'
import type { ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { reset } from '../../sockets.ts'
import { createTrust } from '../../trust.ts'
import { failureOf } from '../failure.ts'
import type { TrafficParts } from '../parts.ts'
import { type Connected, connectUpstream } from './connect.ts'
import type { Outbound, OutboundEvents, OutRequest } from './outbound.ts'
import { sendByHttp1 } from './outbound-h1.ts'
import { sendByHttp2 } from './outbound-h2.ts'
import { createReach, type Destination } from './reach.ts'
import { createSessions, type Sessions, startSession } from './sessions.ts'

/** Whose connection it is: one of a credential serves no other. Null: requests without a secret. */
export type Owner = string | null

export interface Pools {
  /**
   * Sends it, over HTTP/2 where `http2` and the upstream has it. An open connection is used again; its address was checked when it was
   * made. Throws `Failure` before anything was sent.
   */
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
  readonly owner: Owner
}

interface Pool {
  readonly key: string
  readonly agent: Agent
  readonly sessions: Sessions
  /** Connections that were opened for HTTP/2, to an upstream that turned out to have none. */
  readonly spare: Socket[]
  isHttp1: boolean
  sockets: number
}

/** Less than the five seconds after which many servers close a quiet connection. */
const IDLE_MS = 4_000
const MOST_FREE = 64
/** To connect, TLS included; then for the first word of HTTP/2. */
const CONNECT_MS = 10_000

type PoolParts = Pick<TrafficParts, 'resolver' | 'isLocal' | 'ownServer' | 'cuts' | 'connect'>

export function createPools(parts: PoolParts): Pools {
  const reach = createReach(parts)
  const dialer = createDialer(parts, reach)
  const pools = createPoolTable(dialer.dial)

  return {
    async send(to, owner, http2, request, on) {
      const pool = pools.poolOf({ to, owner })
      const over2 = http2 && to.scheme === 'https' && !pool.isHttp1
      const taken = over2 ? await pool.sessions.take() : undefined
      try {
        return taken === undefined
          ? sendByHttp1(pool.agent, request, on)
          : sendByHttp2(taken, { ...request, scheme: to.scheme }, on)
      } catch (error) {
        taken?.release()
        throw failureOf(error, 'broken')
      }
    },
    async check(to) {
      await reach(to)
    },
    async open(to, owner) {
      return (await dialer.dial({ to, owner }, ['http/1.1'])).socket
    },
    close() {
      dialer.close()
      pools.close()
    },
  }
}

type Dial = (whose: Whose, alpn: readonly string[]) => Promise<Connected>

/** Connects to an address that was checked now. Every connection is ended with its credential. */
function createDialer(
  parts: PoolParts,
  reach: ReturnType<typeof createReach>,
): { readonly dial: Dial; close(): void } {
  const open = new Set<Socket>()
  const trust = createTrust()
  return {
    async dial({ to, owner }, alpn) {
      const onSocket = (raw: Socket) => {
        open.add(raw)
        const untrack = owner === null ? undefined : parts.cuts.track(owner, () => reset(raw))
        raw.once('close', () => {
          open.delete(raw)
          untrack?.()
        })
      }
      return connectUpstream(to, await reach(to), {
        alpn,
        timeoutMs: CONNECT_MS,
        ...{ onSocket, trust, connect: parts.connect },
      })
    },
    close() {
      for (const raw of open) reset(raw)
    },
  }
}

function createPoolTable(dial: Dial) {
  const pools = new Map<string, Pool>()
  /** A number for each set of authorities, so that no key is as long as they are. */
  const numbers = new Map<string | undefined, number>()
  const trusted = (ca: string | undefined): number => {
    const number = numbers.get(ca) ?? numbers.size
    numbers.set(ca, number)
    return number
  }

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
    const { to, owner } = whose
    const key = `${owner}|${to.is}|${to.scheme}|${to.host}|${to.port}|${trusted(to.ca)}|${to.accounts ?? ''}`
    const known = pools.get(key)
    if (known !== undefined) return known
    const agent = pooling(async () => spareOf(pool) ?? (await dialFor(pool, whose, ['http/1.1'])).socket)
    const sessions = createSessions(() => openSession(pool, whose))
    const pool: Pool = { key, agent, sessions, spare: [], isHttp1: false, sockets: 0 }
    pools.set(key, pool)
    return pool
  }

  async function openSession(pool: Pool, whose: Whose): Promise<ClientHttp2Session | undefined> {
    const { socket, protocol } = await dialFor(pool, whose, ['h2', 'http/1.1'])
    if (protocol === 'h2') return startSession(whose.to, socket, CONNECT_MS)
    pool.isHttp1 = true
    pool.spare.push(socket)
    socket.setTimeout(IDLE_MS, () => {
      if (pool.spare.includes(socket)) reset(socket)
    })
    return undefined
  }

  return {
    poolOf,
    close() {
      for (const { agent } of pools.values()) agent.destroy()
      pools.clear()
    },
  }
}

function spareOf({ spare }: Pool): Socket | undefined {
  for (let socket = spare.pop(); socket !== undefined; socket = spare.pop()) {
    socket.setTimeout(0)
    if (!socket.destroyed && socket.readable) return socket
  }
  return undefined
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
