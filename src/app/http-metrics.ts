import type { HttpServer } from '../http/server/server.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When its head had arrived, by `performance.now()`. */
    begunAt: number
  }
  interface FastifyContextConfig {
    /** What is counted of this route. */
    series?: Series
  }
}

/** Upper bounds in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx']

interface Series {
  readonly method: string
  /** The template, never the path that was sent. */
  readonly route: string
  readonly byClass: Float64Array
  /** One more than `BUCKETS`. */
  readonly byTime: Float64Array
  seconds: number
}

/**
 * Requests by route, method and class of status, with their times. Its own arrays and text, because every request passes here: no
 * labels are put together, and nothing is looked up by name. As many series as routes.
 */
export interface HttpMetrics {
  /** Before the routes are added. */
  watch(server: HttpServer): void
  /** Prometheus text exposition format. */
  render(): string
}

export function createHttpMetrics(): HttpMetrics {
  const all: Series[] = []
  const add = (method: string, route: string): Series => {
    const one: Series = {
      method,
      route,
      byClass: new Float64Array(CLASSES.length),
      byTime: new Float64Array(BUCKETS.length + 1),
      seconds: 0,
    }
    all.push(one)
    return one
  }
  return {
    watch(server) {
      const unknown = add('any', 'none')
      server.addHook('onRoute', (route) => {
        route.config = { ...route.config, series: add([route.method].flat().join(','), route.url) }
      })
      server.decorateRequest('begunAt', 0)
      server.addHook('onRequest', (request, _reply, done) => {
        request.begunAt = performance.now()
        done()
      })
      // Not when the reply has been written: for that, Fastify would listen to the events of every response.
      server.addHook('onSend', (request, reply, _payload, done) => {
        const seconds = (performance.now() - request.begunAt) / 1_000
        observe(request.routeOptions.config.series ?? unknown, reply.statusCode, seconds)
        done()
      })
    },
    render: () => textOf(all),
  }
}

function observe(series: Series, status: number, seconds: number): void {
  const place = Math.floor(status / 100) - 1
  series.byClass[place] = (series.byClass[place] ?? 0) + 1
  let bucket = 0
  while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] ?? 0)) bucket += 1
  series.byTime[bucket] = (series.byTime[bucket] ?? 0) + 1
  series.seconds += seconds
}

function textOf(all: readonly Series[]): string {
  const used = all.filter(({ byTime }) => byTime.some((count) => count > 0))
  return [
    '# HELP mayfly_http_requests_total Requests, by route, method and class of status',
    '# TYPE mayfly_http_requests_total counter',
    ...used.flatMap(({ byClass, ...one }) =>
      CLASSES.flatMap((status, place) => {
        const count = byClass[place] ?? 0
        return count === 0 ? [] : [`mayfly_http_requests_total{${labels(one)},status="${status}"} ${count}`]
      }),
    ),
    '# HELP mayfly_http_request_seconds Time from the head of a request to its reply',
    '# TYPE mayfly_http_request_seconds histogram',
    ...used.flatMap(linesOf),
    '',
  ].join('\n')
}

function linesOf({ byTime, seconds, ...one }: Series): string[] {
  const name = 'mayfly_http_request_seconds'
  let count = 0
  const buckets = [...BUCKETS, '+Inf'].map((most, place) => {
    count += byTime[place] ?? 0
    return `${name}_bucket{${labels(one)},le="${most}"} ${count}`
  })
  return [...buckets, `${name}_sum{${labels(one)}} ${seconds}`, `${name}_count{${labels(one)}} ${count}`]
}

const labels = ({ method, route }: Pick<Series, 'method' | 'route'>) => `method="${method}",route="${route}"`
