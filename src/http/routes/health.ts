import { Type } from 'typebox'
import { text } from '../../api/shared.ts'
import { listUnended } from '../../core/backends/unended.ts'
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
  const Readiness = Type.Object(
    {
      ...Health.properties,
      unended: Type.Optional(
        Type.Array(
          Type.Object({
            backend: text('Name of the backend.', 'orders'),
            count: Type.Integer({ description: 'How many.', examples: [12] }),
            age_seconds: Type.Integer({
              description: 'How long ago the first of them ended.',
              examples: [45],
            }),
          }),
          {
            description:
              'With `?verbose`: backends with credentials that have ended and that the upstream may still accept.',
          },
        ),
      ),
    },
    { title: 'Readiness' },
  )

  addRoute(http, 'GET /health', {
    schema: { summary: 'Whether the process is alive', tags, response: { 200: Health } },
    handle: () => ({ status: 'ok', version: parts.version }),
  })

  addRoute(http, 'GET /readyz', {
    schema: {
      summary: 'Whether the server can issue: whether the store is writable',
      description:
        'With `?verbose`, which needs `admin:metrics:read` or the local host, it names the backends whose upstream has not confirmed yet that a credential is gone. They do not make the server unready.',
      tags,
      querystring: Type.Object({
        verbose: Type.Optional(
          Type.Union([Type.Literal(''), Type.Literal('true')], { description: 'Names backends, too.' }),
        ),
      }),
      response: { 200: Readiness },
    },
    handle: async ({ query }) => {
      const trouble = parts.trouble()
      if (trouble !== undefined)
        throw new Problem('store_unavailable', { message: `Not ready: ${trouble}.`, retryAfterSeconds: 1 })
      const ready = { status: 'ready', version: parts.version }
      if (query.verbose === undefined) return ready
      const now = http.core.store.now()
      const unended = (await listUnended(http.core)).map(({ backend, count, since }) => ({
        backend,
        count,
        age_seconds: Math.max(0, Math.floor((now - since) / 1_000)),
      }))
      return { ...ready, unended }
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
