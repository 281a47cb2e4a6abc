import type { FastifyRequest } from 'fastify'
import type { Origin } from '../../core/caller.ts'

const CONTROLS = /\p{Cc}/gu

/** The origin for audit entries. The user agent has its control characters escaped and at most 256 characters. */
export function originOf(request: FastifyRequest): Origin {
  const agent = request.headers['user-agent']
  return {
    requestId: request.id,
    ipAddress: request.ip ?? null,
    userAgent:
      agent === undefined
        ? null
        : agent.slice(0, 256).replace(CONTROLS, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`),
  }
}
