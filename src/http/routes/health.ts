import { Type } from 'typebox'
import { text } from '../../api/shared.ts'
import { Problem } from '../../domain/problems.ts'
import { addRoute, type Http } from '../routing/route.ts'

const tags = ['operations']

export interface HealthParts {
  readonly version: string
  /** Why the server cannot issue; undefined if it can. */
  trouble(): string | undefined
  readonly metrics: { render(): Promise<string>; readonly contentType: string }
}

export function healthRoutes(http: Http, parts: HealthParts): void {
  const Health = Type.Object(
    { status: text('ok or ready.', 'ok'), version: text('Version of the server.', '0.2.0') },
    { title: 'Health' },
  )

  addRoute(http, 'GET /health', {
    schema: { summary: 'Whether the process is alive', tags, response: { 200: Health } },
    handle: () => ({ status: 'ok', version: parts.version }),
  })

  addRoute(http, 'GET /readyz', {
    schema: {
      summary: 'Whether the server can issue: whether the store is writable',
      tags,
      response: { 200: Health },
    },
    handle: async () => {
      const trouble = parts.trouble()
      if (trouble !== undefined)
        throw new Problem('store_unavailable', { message: `Not ready: ${trouble}.`, retryAfterSeconds: 1 })
      return { status: 'ready', version: parts.version }
    },
  })

  addRoute(http, 'GET /metrics', {
    schema: {
      summary: 'Prometheus metrics',
      tags,
      response: { 200: Type.String() },
      produces: ['text/plain'],
    },
    handle: async ({ reply }) => {
      const text = await parts.metrics.render()
      return reply
        .header('content-type', parts.metrics.contentType)
        .serializer((body: unknown) => String(body))
        .send(text)
    },
  })
}
