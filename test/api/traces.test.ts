import { createServer, type IncomingMessage, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createExporter, QUEUE, type Span } from '../../src/app/traces/otlp.ts'
import { readParent } from '../../src/app/traces/traces.ts'
import { createLogger } from '../../src/log/log.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { someCredential } from '../support/store.ts'

interface WireSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: string } }[]
  readonly status: { code?: number }
}

/** A receiver of OTLP/HTTP as the specification describes it: it refuses what is not. */
const spans: WireSpan[] = []
const bodies: string[] = []
const receiver = createServer(async (request, reply) => {
  const body = await text(request)
  bodies.push(body)
  const isOtlp = request.method === 'POST' && request.url === '/collect/v1/traces'
  if (!isOtlp || request.headers['content-type'] !== 'application/json') return reply.writeHead(400).end()
  for (const { resource, scopeSpans } of JSON.parse(body).resourceSpans) {
    expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'mayfly' } })
    for (const scope of scopeSpans) spans.push(...scope.spans)
  }
  return reply.writeHead(200, { 'content-type': 'application/json' }).end('{}')
})

/** A token endpoint (RFC 6749 §5.1). */
const asked: IncomingMessage[] = []
const upstream = createServer((request, reply) => {
  asked.push(request)
  const token = { access_token: 'upstream-secret', token_type: 'Bearer', expires_in: 3_600 }
  reply.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token))
})

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
let app: TestApp

const listen = async (server: Server) => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

beforeAll(async () => {
  const endpoint = `${await listen(receiver)}/collect/`
  app = await startApp({ argv: { otlpEndpoint: endpoint } })
  const config = {
    token_endpoint: `${await listen(upstream)}/token`,
    client_id: 'mayfly',
    client_secret: 'root-secret',
    scopes: ['orders:read'],
    local: true,
  }
  const made = await app.admin('POST', '/v1/admin/backends?check=false', {
    type: 'oauth2',
    name: 'api',
    config,
  })
  expect(made.status, made.text).toBe(200)
})
afterAll(async () => {
  await app.close()
  receiver.close()
  upstream.close()
})

const ofTrace = (id: string) => spans.filter(({ traceId }) => traceId === id)
const attributeOf = ({ attributes }: WireSpan, key: string) => {
  const found = attributes.find((one) => one.key === key)?.value
  return found?.stringValue ?? found?.intValue
}

describe('traces', () => {
  test('continue that of the caller, down to the commits and the upstream', async () => {
    const agent = await app.newAgent({ scopes: ['api:*'] })
    const traceparent = `00-${TRACE}-${PARENT}-01`
    const reply = await agent.client.post('/v1/credentials/api', undefined, { traceparent })
    expect(reply.status, reply.text).toBe(200)
    await expect.poll(() => ofTrace(TRACE).length).toBeGreaterThanOrEqual(4)
    const all = ofTrace(TRACE)
    const [request] = all.filter(({ kind }) => kind === 2)
    const [call] = all.filter(({ kind }) => kind === 3)
    if (request === undefined || call === undefined) throw new Error('a span is missing')
    expect(request).toMatchObject({ name: 'POST /v1/credentials/:backend', parentSpanId: PARENT, status: {} })
    expect(attributeOf(request, 'http.response.status_code')).toBe('200')
    expect(call).toMatchObject({ name: 'upstream issue', parentSpanId: request.spanId })
    expect([attributeOf(call, 'mayfly.backend'), attributeOf(call, 'mayfly.kind')]).toEqual(['api', 'oauth2'])
    const commits = all.filter(({ name }) => name === 'commit')
    expect(commits.map(({ parentSpanId }) => parentSpanId)).toEqual([request.spanId, request.spanId])
    expect(asked.at(-1)?.headers['traceparent']).toBe(`00-${TRACE}-${call.spanId}-01`)
    for (const { startTimeUnixNano: from, endTimeUnixNano: to } of all) {
      expect(BigInt(to)).toBeGreaterThanOrEqual(BigInt(from))
      expect(Math.abs(Number(BigInt(from) / 1_000_000n) - Date.now())).toBeLessThan(120_000)
    }
  })

  test('hold no secret, no path and no query, and respect a sender that records nothing', async () => {
    const agent = await app.newAgent({ scopes: ['api:*'] })
    const unsampled = '1'.repeat(32)
    await agent.client.get('/v1/status', { traceparent: `00-${unsampled}-${PARENT}-00` })
    await app.as(agent.token).get('/v1/credentials/hidden-name?secret=hunter2')
    await expect
      .poll(() => spans.filter(({ name }) => name === 'GET /v1/credentials/:backend').length)
      .toBe(1)
    expect(ofTrace(unsampled)).toEqual([])
    const sent = bodies.join('')
    for (const secret of ['hunter2', 'hidden-name', 'root-secret', 'upstream-secret', agent.token])
      expect(sent).not.toContain(secret)
  })

  test('have one of its own for a sweep', async () => {
    const now = app.core.store.now()
    const row = someCredential({
      backendUid: (await app.core.store.backends.findByName('api'))?.uid ?? '',
      backend: 'api',
      state: 'revoking',
      endedAt: now - 1_000,
      createdAt: now - 60_000,
      dueAt: now,
    })
    await app.core.store.commit([app.core.store.credentials.insert(row)])
    await app.sweep()
    const sweeps = () => spans.filter(({ name }) => name === 'sweep')
    await expect.poll(() => sweeps().length).toBe(1)
    const [sweep] = sweeps()
    expect(sweep?.parentSpanId).toBeUndefined()
    expect(ofTrace(sweep?.traceId ?? '').some(({ parentSpanId }) => parentSpanId === sweep?.spanId)).toBe(
      true,
    )
  })

  test('begin anew where the header is not one', () => {
    expect(readParent(`00-${TRACE}-${PARENT}-01`)).toEqual({
      traceId: TRACE,
      spanId: PARENT,
      isSampled: true,
    })
    expect(readParent(`01-${TRACE}-${PARENT}-01-more`)).toMatchObject({ traceId: TRACE })
    const hostile = [
      undefined,
      '',
      ['a', 'b'],
      `ff-${TRACE}-${PARENT}-01`,
      `00-${TRACE}-${PARENT}-01-more`,
      `00-${'0'.repeat(32)}-${PARENT}-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      `00-${TRACE.toUpperCase()}-${PARENT}-01`,
      `00-${TRACE}-${PARENT}-01\r\nx: y`,
      `01-${TRACE}-${PARENT}-01-${'x'.repeat(1_000)}`,
    ]
    for (const header of hostile) expect(readParent(header)).toBeUndefined()
  })
})

test('a receiver that is gone costs a bounded queue, one line of the log, and nothing else', async () => {
  const lines: string[] = []
  const log = createLogger({
    level: 'info',
    format: 'json',
    destination: { write: (line) => lines.push(line) },
  })
  let isGone = true
  let taken = 0
  const exporter = createExporter({
    url: 'http://collector.test/v1/traces',
    version: 'test',
    log,
    fetch: async (_url, init) => {
      if (isGone) throw new Error('gone')
      taken += JSON.parse(String(init.body)).resourceSpans[0].scopeSpans[0].spans.length
      return new Response('{}')
    },
  })
  const span: Span = {
    traceId: TRACE,
    spanId: PARENT,
    parentId: undefined,
    name: 'one',
    kind: 'internal',
    begunAt: 1n,
    endedAt: 2n,
    attributes: {},
    isError: false,
  }
  for (let one = 0; one < QUEUE + 100; one += 1) exporter.add(span)
  await expect.poll(() => lines.length).toBe(1)
  expect(exporter.dropped).toBe(100)
  isGone = false
  await exporter.close()
  expect(taken).toBe(QUEUE)
  expect(lines).toHaveLength(2)
})
