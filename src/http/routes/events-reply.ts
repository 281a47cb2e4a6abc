import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Server-sent events (HTML, §9.2). */
export function sendEvents(reply: FastifyReply, body: Readable): FastifyReply {
  return (
    reply
      .header('content-type', 'text/event-stream; charset=utf-8')
      // For proxies that would wait for the end of the reply.
      .header('x-accel-buffering', 'no')
      .send(body)
  )
}

/** What the gate has admitted an agent by: a long reply asks again whether it is still good. */
export function bearerOf(request: FastifyRequest): string | undefined {
  return request.headers.authorization?.slice('Bearer '.length)
}
