import { readAllHealth } from '../../core/backends/report-health.ts'
import { listUnended } from '../../core/backends/unended.ts'
import { Problem } from '../../domain/problems.ts'
import { addRoute, type Http } from '../routing/route.ts'
import { presentHealth } from './present-health.ts'

export interface HealthParts {
  readonly version: string
  /** Why the server cannot issue; undefined if it can. */
  trouble(): string | undefined
  readonly metrics: { render(): Promise<string>; readonly contentType: string }
}

export function healthRoutes(http: Http, parts: HealthParts): void {
  addRoute(http, 'GET /health', () => ({ status: 'ok', version: parts.version }))

  addRoute(http, 'GET /readyz', async ({ query }) => {
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
    return { ...ready, backends: summary(await readAllHealth(http.core)), unended }
  })

  addRoute(http, 'GET /metrics', async ({ reply }) => {
    const text = await parts.metrics.render()
    return reply
      .header('content-type', parts.metrics.contentType)
      .serializer((body: unknown) => String(body))
      .send(text)
  })
}

function summary(all: Awaited<ReturnType<typeof readAllHealth>>) {
  const countOf = (state: string) => all.filter(({ health }) => health.state === state).length
  const down = all
    .filter(({ health }) => health.state === 'down')
    .map(({ backend, health }) => ({ backend, ...presentHealth(health) }))
  return { up: countOf('up'), unknown: countOf('unknown'), down }
}
