import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openApiDocument } from '../../src/http/routing/openapi.ts'
import { createConnection, type RawReply } from '../support/keep-alive.ts'
import { LONG } from '../support/long.ts'
import { createCostCheck } from './cost.ts'
import { openPool, type Pool } from './pool.ts'
import { type Asked, createReplyCheck, type Document } from './replies.ts'
import { anyRequest, type Drawn } from './requests.ts'
import { withoutRefs } from './without-refs.ts'

/**
 * Sends random requests, drawn from the OpenAPI document, over real sockets and checks that the document describes
 * every reply, and that none takes more than its share of the thread. MAYFLY_FUZZ_SEED sets the seed; MAYFLY_LONG=1 sends 200,000 requests.
 */
const COUNT = LONG ? 200_000 : 10_000
const SEED = Number(process.env['MAYFLY_FUZZ_SEED'] ?? 20_261_122)
/** Requests sent concurrently before the pool replaces the resources that they ended. */
const TOGETHER = 50

let pool: Pool
let document: Document
/** The requests that each operation matches; paths without a parameter come first, as in the router. */
let patterns: readonly (readonly [operation: string, request: RegExp])[]
beforeAll(async () => {
  pool = await openPool()
  const { paths } = withoutRefs(openApiDocument(pool)) as Document
  // They have no end (`test/api/events.test.ts`, `test/api/run-events.test.ts`).
  const { '/v1/admin/events': _, '/v1/runs/{id}/events': __, ...ending } = paths
  document = { paths: ending }
  patterns = Object.entries(document.paths)
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
    .sort((a, b) => Number(a.includes('{')) - Number(b.includes('{')))
    .map((operation) => [operation, new RegExp(`^${operation.replaceAll(/\{\w+\}/g, '[^/?]+')}(\\?|$)`)])
})
afterAll(() => pool.close())

interface Sendable extends Asked {
  readonly bytes: Buffer
}

function fill(text: string, encode: (value: string) => string = (value) => value): string {
  return text.replace(/\{\{(\w+):(\d+)\}\}/g, (_, kind: string, index: string) =>
    encode(pool.resource(kind, Number(index))),
  )
}

function prepare(drawn: Drawn): Sendable {
  const callerKind = /^\{\{caller:(\w+)\}\}$/.exec(drawn.caller)?.[1]
  const bearer = callerKind === undefined ? drawn.caller : pool.bearer(callerKind)
  const body = drawn.body === undefined ? undefined : Buffer.from(fillBody(drawn.body))
  const headers: (readonly [string, string])[] = [
    ['Host', `127.0.0.1:${pool.port}`],
    ...drawn.headers.map(
      ([key, value]) => [key, fill(value).replace(/[^\t\x20-\x7e\x80-\xff]/g, '')] as const,
    ),
  ]
  if (bearer !== undefined) headers.push(['Authorization', bearer])
  if (callerKind === 'none' && !drawn.headers.some(([key]) => key === 'x-forwarded-for'))
    headers.push(['X-Forwarded-For', '192.0.2.1'])
  if (body !== undefined) {
    if (drawn.body?.type !== undefined) headers.push(['Content-Type', drawn.body.type])
    headers.push(['Content-Length', String(body.length)])
  }
  const target = targetOf(drawn)
  const head = `${drawn.method} ${target} HTTP/1.1\r\n${headers.map(([key, value]) => `${key}: ${value}\r\n`).join('')}\r\n`
  const actual = `${drawn.method === 'HEAD' ? 'GET' : drawn.method} ${target}`
  const bytes = Buffer.concat([Buffer.from(head, 'latin1'), body ?? Buffer.alloc(0)])
  return {
    operation: patterns.find(([, request]) => request.test(actual))?.[0] ?? drawn.operation,
    method: drawn.method,
    bearer,
    mayFailUpstream: usesDeadUpstream(drawn, target, body),
    bytes,
  }
}

/** Creates backends of kind `postgres` with `check=false`, because no such upstream exists. */
function targetOf(drawn: Drawn): string {
  const path = fill(drawn.path, encodeURIComponent)
  const uncheckable = drawn.operation.endsWith('/backends') || drawn.method === 'PUT'
  const pairs = drawn.query.map(([key, value]) => [key, fill(value)] as const)
  if (
    uncheckable &&
    /postgres|"port"|"host"/.test(drawn.body?.text ?? '') &&
    !pairs.some(([key]) => key === 'check')
  )
    pairs.push(['check', 'false'])
  const checked = pairs.map(([key, value]) =>
    uncheckable && key === 'check' && value === 'true' ? ([key, 'false'] as const) : ([key, value] as const),
  )
  const query = checked
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value.toWellFormed())}`)
    .join('&')
  return query === '' ? path : `${path}?${query}`
}

function fillBody(body: NonNullable<Drawn['body']>): string {
  const isForm = body.type?.includes('form') === true
  return fill(body.text, isForm ? encodeURIComponent : (value) => value)
}

/** Five megabytes: the client of this test takes longer to read them than the server to send them (`unread-replies.test.ts`). */
const LARGE = 'GET /docs/scalar.js'

/** No backend here has an upstream that answers. */
const NEED_UPSTREAM = new Set([
  'POST /v1/admin/backends/{name}/rotate-root',
  'POST /v1/admin/backends/{name}/reconcile',
])

/** Fifteen fields must be right at once, which a draw never is: test/api/run-requests.test.ts sends them. */
const NEED_LINES = 'POST /v1/runs/{id}/requests'
/** It needs a receiver of notifications. */
const NEED_RECEIVER = 'POST /v1/admin/notify/{name}/test'

/** They need what nobody draws: the ticket of an address, which is good once, and a name with the hash of a build. */
const NEED_SECRET = new Set(['GET /v1/admin/audit/export', 'GET /console/assets/{file}'])

/** Every request here comes over TCP, which these refuse. */
const NEED_SOCKET = new Set([
  'POST /v1/admin/plugins',
  'DELETE /v1/admin/plugins/{name}',
  'POST /v1/admin/reload',
  'POST /v1/admin/console/links',
])

/** The page of the console, a passkey, or an operator's address: what these refuse is drawn here, not what they do. */
const NEED_PERSON =
  /\/v1\/console\/|\/v1\/admin\/sessions\/|^(?:POST|PATCH|DELETE) \/v1\/admin\/operators|operators\/\{id\}/

function usesDeadUpstream(drawn: Drawn, target: string, body: Buffer | undefined): boolean {
  if (NEED_UPSTREAM.has(drawn.operation)) return /\/dead\//i.test(target)
  if (drawn.operation === 'POST /api/v1/credentials') return /"backend":"dead"/i.test(String(body))
  return (
    drawn.operation.endsWith(' /v1/credentials/{backend}') && /^\/v1\/credentials\/dead(\?|$)/i.test(target)
  )
}

/** Adds created resources to the pool, for the requests that follow. */
function learn(reply: RawReply): void {
  for (const [id] of reply.body.matchAll(/\bcred_[0-9a-z]{26}\b/g)) pool.keep('credential', id)
  if (reply.status === 200 || reply.status === 201) {
    for (const [id] of reply.body.matchAll(/\brun_[0-9a-z]{26}\b/g)) pool.keep('run', id)
    for (const [id] of reply.body.matchAll(/\benr_[0-9a-z]{26}\b/g)) pool.keep('enrollment', id)
    const cursor =
      /"next_cursor":"(\w+)"/.exec(reply.body)?.[1] ??
      /[?&]cursor=(\w+)/.exec(reply.headers.get('link') ?? '')?.[1]
    if (cursor !== undefined) pool.keep('cursor', cursor)
    const token = /"token":"(eyJ[\w.-]+)"/.exec(reply.body)?.[1]
    if (token !== undefined) pool.keep('credentialToken', token)
  }
}

it(`gives only documented replies to ${COUNT} requests`, { timeout: COUNT * 20 }, async () => {
  const check = createReplyCheck(document)
  const connections = Array.from({ length: 10 }, () => createConnection(pool.port))
  const statuses = new Map<string, Map<number, number>>()
  const faults = new Map<string, string>()
  const costs = createCostCheck()
  let sent = 0

  async function sendOne(connection: (typeof connections)[number], drawn: Drawn): Promise<void> {
    const asked = prepare(drawn)
    const shown = JSON.stringify(asked.bytes.toString('latin1').slice(0, 2_000))
    const work = () => connection.send(asked.bytes, asked.method)
    const isLarge = asked.operation === LARGE
    const asking = isLarge ? work() : costs.watch(`${asked.operation} ${shown}`, work)
    const reply = await asking.catch((error: Error) => {
      throw new Error(`${error.message}\nto: ${shown}`)
    })
    sent += 1
    const counts = statuses.get(asked.operation) ?? new Map<number, number>()
    statuses.set(asked.operation, counts.set(reply.status, (counts.get(reply.status) ?? 0) + 1))
    const fault = check(asked, reply)
    if (fault !== undefined) faults.set(`${asked.operation}: ${fault}`, described(asked, reply))
    learn(reply)
  }

  const together = fc.array(anyRequest(document.paths), { minLength: TOGETHER, maxLength: TOGETHER })
  const property = fc.asyncProperty(together, async (drawn) => {
    const waiting = [...drawn]
    await Promise.all(
      connections.map(async (connection) => {
        for (let one = waiting.shift(); one !== undefined; one = waiting.shift())
          await sendOne(connection, one)
      }),
    )
    for (const slow of await costs.slow()) faults.set(slow.split(' {')[0] ?? slow, slow)
    await pool.refresh()
  })
  // Every fault is collected with its request, so there is nothing to shrink.
  const run = await fc.check(property, { numRuns: COUNT / TOGETHER, seed: SEED, endOnFailure: true })
  if (run.failed) throw run.errorInstance
  for (const connection of connections) connection.close()

  report(sent, statuses)
  expect([...faults].map(([fault, where]) => `${fault}\n${where}`)).toEqual([])
  expect(sent).toBe(COUNT)
  const neverSucceeded = Object.keys(Object.fromEntries(statuses)).filter(
    (operation) =>
      !NEED_UPSTREAM.has(operation) &&
      !NEED_SOCKET.has(operation) &&
      operation !== NEED_RECEIVER &&
      operation !== NEED_LINES &&
      !NEED_SECRET.has(operation) &&
      !NEED_PERSON.test(operation) &&
      ![...(statuses.get(operation)?.keys() ?? [])].some((status) => status < 400),
  )
  expect(neverSucceeded, 'every operation has succeeded at least once').toEqual([])
  expect(statuses.size).toBe(patterns.length)
  expect(pool.logged()).not.toMatch(/unexpected error|ck[rs]_[0-9a-f]{8}|eyJ[\w-]+\.|PRIVATE KEY/)
  expect(pool.core.store.trouble()).toBeUndefined()
})

function described(asked: Sendable, reply: RawReply): string {
  const request = JSON.stringify(asked.bytes.toString('latin1').slice(0, 1_500))
  const headers = [...reply.headers].map((pair) => pair.join(': ')).join('; ')
  return `to: ${request}\ngot: ${reply.status} ${reply.body.slice(0, 600)}\nwith ${headers}`
}

function report(sent: number, statuses: ReadonlyMap<string, ReadonlyMap<number, number>>): void {
  const totals = new Map<number, number>()
  for (const counts of statuses.values())
    for (const [status, count] of counts) totals.set(status, (totals.get(status) ?? 0) + count)
  if (process.env['MAYFLY_FUZZ_DETAIL'] !== undefined)
    for (const [operation, counts] of statuses) console.log(operation, Object.fromEntries(counts))
  const shown = [...totals].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
  console.log(`fuzz: ${sent} requests, ${statuses.size} operations, seed ${SEED}; ${shown.join(', ')}`)
}
