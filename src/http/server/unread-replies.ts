import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { siteOf } from '../../core/network.ts'
import { Problem } from '../../domain/problems.ts'

/** Pipelined requests per connection: all run at once, and their replies stay in memory until the client reads them. */
const MAX_WAITING = 16

/** Bytes of replies that are in memory because their clients do not read them. Tests lower them. */
export interface UnreadLimits {
  readonly perSite: number
  readonly total: number
  /** A reply that is younger, in ms, may be on its way. */
  readonly graceMs: number
  readonly checkMs: number
}

const LIMITS: UnreadLimits = { perSite: 64 << 20, total: 512 << 20, graceMs: 2_000, checkMs: 250 }

interface Unread {
  readonly socket: Socket
  readonly site: string
  readonly bytes: number
  readonly since: number
}

export interface UnreadReplies {
  /** Refuses too many pipelined requests on one connection: thousands fit into one packet. */
  refuse(request: FastifyRequest, reply: FastifyReply): Problem | undefined
  /** Looks after the connections of this listener. */
  watch(listener: Server): void
}

/**
 * Bounds the memory of replies that nobody reads. Where one site, or all together, have more than they may, the connections
 * that have been waiting longest are closed.
 */
export function createUnreadReplies(set: Partial<UnreadLimits> = {}): UnreadReplies {
  const limits = { ...LIMITS, ...set }
  /** Replies behind the first one of their connection. Node gives the socket to the first; the others wait without one. */
  const waiting = new WeakMap<Socket, Set<ServerResponse>>()
  /** Since when a connection has bytes that its client has not read; undefined while it has none. */
  const connections = new Map<Socket, number | undefined>()

  function measure(now: number): Unread[] {
    const all: Unread[] = []
    for (const [socket, since = now] of connections) {
      let bytes = socket.writableLength
      for (const reply of waiting.get(socket) ?? []) bytes += reply.writableLength
      connections.set(socket, bytes === 0 ? undefined : since)
      if (bytes > 0) all.push({ socket, site: siteOf(socket.remoteAddress ?? null), bytes, since })
    }
    return all
  }

  function check(): void {
    const now = performance.now()
    const all = measure(now)
    const ofSites = Map.groupBy(all, ({ site }) => site)
    const close = (some: readonly Unread[], most: number) => {
      let sum = sumOf(some)
      const oldest = some
        .filter(({ since }) => now - since >= limits.graceMs)
        .sort((a, b) => a.since - b.since)
      for (const { socket, bytes } of oldest) {
        if (sum <= most) break
        socket.destroy()
        sum -= bytes
      }
    }
    for (const some of ofSites.values()) close(some, limits.perSite)
    // Of those that have the most.
    const living = [...ofSites.values()].map((some) => some.filter(({ socket }) => !socket.destroyed))
    let excess = sumOf(living.flat()) - limits.total
    for (const some of living.sort((a, b) => sumOf(b) - sumOf(a))) {
      if (excess <= 0) break
      const sum = sumOf(some)
      close(some, Math.max(0, sum - excess))
      excess -= sum - sumOf(some.filter(({ socket }) => !socket.destroyed))
    }
  }

  return {
    refuse: (request, reply) => takePlace(waiting, request, reply),
    watch(listener) {
      const add = (socket: Socket) => {
        connections.set(socket, undefined)
        socket.once('close', () => connections.delete(socket))
      }
      listener.on('connection', add)
      // What is written with TLS waits in a socket of its own.
      listener.on('secureConnection', add)
      const timer = setInterval(check, limits.checkMs).unref()
      listener.once('close', () => clearInterval(timer))
    },
  }
}

const sumOf = (some: readonly Unread[]) => some.reduce((sum, { bytes }) => sum + bytes, 0)

function takePlace(
  waiting: WeakMap<Socket, Set<ServerResponse>>,
  request: FastifyRequest,
  reply: FastifyReply,
): Problem | undefined {
  if (reply.raw.socket !== null) return undefined
  const { socket } = request.raw
  const others = waiting.get(socket) ?? new Set<ServerResponse>()
  if (others.size >= MAX_WAITING) {
    reply.header('connection', 'close')
    return new Problem('rate_limited', { message: 'Too many requests are waiting on this connection.' })
  }
  waiting.set(socket, others.add(reply.raw))
  reply.raw.once('close', () => others.delete(reply.raw))
  return undefined
}
