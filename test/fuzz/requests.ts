import fc from 'fast-check'
import { bodyOf } from './bodies.ts'
import { brokenText, fitting, MARK, pooled, type Schema } from './values.ts'

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: Schema
}

interface Media {
  schema?: Schema
  examples?: Record<string, { value: { error: string & { code?: string } } }>
}

export interface Operation {
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema; example?: unknown }> }
  responses: Record<string, { content?: Record<string, Media> }>
}

/** A request as text, with placeholders for resources of the pool. */
export interface Drawn {
  /** As in the document: `GET /v1/status`. */
  readonly operation: string
  readonly method: string
  /** Percent-encoded except for the placeholders. */
  readonly path: string
  readonly query: readonly (readonly [string, string])[]
  readonly headers: readonly (readonly [string, string])[]
  /** A placeholder for a caller of the pool, or a value of `Authorization`. */
  readonly caller: string
  readonly body: { readonly type: string | undefined; readonly text: string } | undefined
}

const CALLERS: [number, string][] = [
  [6, 'loopback'],
  [6, 'wide'],
  [5, 'wideJwt'],
  [1, 'narrow'],
  [1, 'narrowedJwt'],
  [1, 'scopeless'],
  [1, 'partAdmin'],
  [1, 'none'],
  [1, 'expiredJwt'],
  [1, 'expired'],
  [1, 'deleted'],
]
const MALFORMED = [
  'Bearer',
  'Bearer ',
  `Bearer ${MARK}`,
  `Bearer  ${MARK}`,
  `Basic ${MARK}`,
  `bearer eyJ${MARK}.e30.`,
  `Bearer ckr_${'0'.repeat(48)}`,
  `Bearer ckr_${MARK}`,
  `Bearer eyJhbGciOiJub25lIn0.e30.`,
  `Bearer ${'e'.repeat(4_200)}`,
  `Bearer ${MARK}, Bearer ${MARK}`,
  'Bearer \u00e9\u00ff',
]

const caller = fc.oneof(
  ...CALLERS.map(([weight, kind]) => ({ weight, arbitrary: fc.constant(`{{caller:${kind}}}`) })),
  { weight: 2, arbitrary: fc.constantFrom(...MALFORMED) },
)

const mostlyNone = fc.oneof({ weight: 8, arbitrary: fc.constant('{{caller:none}}') }, caller)

const mostlyRegistry = fc.oneof({ weight: 8, arbitrary: fc.constant('{{caller:registry}}') }, caller)

const mostlyKeyless = fc.oneof({ weight: 8, arbitrary: fc.constant('{{caller:keyless}}') }, caller)

/** The server refuses a request that authenticates in two ways. */
function callerOf(path: string) {
  if (path === '/v1/login') return mostlyKeyless
  return path.startsWith('/oauth/') ? mostlyNone : path.endsWith('/token') ? mostlyRegistry : caller
}

/** Headers that HTTP permits; raw-socket.test.ts sends the others. */
const header = fc.oneof(
  fc.constant(['user-agent', `${MARK}\u0080\u009b[31m\u00ff`] as const),
  fc.constant(['idempotency-key', `${MARK} x`] as const),
  fc.constant(['idempotency-key', '\u00e9'] as const),
  fc.constant(['idempotency-key', MARK.repeat(64)] as const),
  fc.nat({ max: 20 }).map((n) => ['idempotency-key', `key-${n}`] as const),
  fc.constant(['x-forwarded-for', '10.0.0.1'] as const),
  fc.constant(['origin', `https://${MARK}.test`] as const),
  fc.constant(['content-encoding', 'gzip'] as const),
  fc.constant(['x-http-method-override', 'DELETE'] as const),
)

function pathValue(path: string, parameter: Parameter): fc.Arbitrary<string> {
  const known = path.includes('credential') || path.includes('/active/') || path.includes('/tokens/')
  const kind =
    parameter.name === 'backend' || path.includes('/backends/')
      ? 'backend'
      : path.includes('/agents/')
        ? 'agent'
        : path.includes('/plugins/')
          ? 'kind'
          : path.includes('/request/')
            ? 'request'
            : path.includes('/runs/')
              ? 'run'
              : known
                ? 'credential'
                : 'enrollment'
  const encoded = (text: unknown) => encodeURIComponent(String(text).toWellFormed())
  return fc.oneof(
    { weight: 6, arbitrary: pooled(kind) },
    { weight: 1, arbitrary: fitting(parameter.schema).map(encoded) },
    { weight: 2, arbitrary: brokenText(parameter.schema).map(encoded) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('%', '%zz', '%c0%80', '%00', '%2e%2e', '%2f', `{{enrollment:1}}%20`),
    },
  )
}

function queryOf(parameters: readonly Parameter[]): fc.Arbitrary<[string, string][]> {
  const parts: fc.Arbitrary<[string, string][]>[] = parameters.map((parameter) => {
    const text = (value: unknown): [string, string][] =>
      [value].flat().map((one) => [parameter.name, typeof one === 'string' ? one : JSON.stringify(one)])
    return fc.oneof(
      { weight: 6, arbitrary: fc.constant<[string, string][]>([]) },
      { weight: 4, arbitrary: fitting(parameter.schema, parameter.name).map(text) },
      { weight: 1, arbitrary: brokenText(parameter.schema).map(text) },
      // The same key twice.
      {
        weight: 1,
        arbitrary: fitting(parameter.schema, parameter.name).map((one) => [...text(one), ...text(one)]),
      },
    )
  })
  const stray = fc.constantFrom<[string, string]>(
    [MARK, '1'],
    ['__proto__', MARK],
    ['constructor[prototype]', MARK],
    ['limit[]', '1'],
    ['access_token', MARK],
    ['', ''],
  )
  const strays = fc.oneof(
    { weight: 12, arbitrary: fc.constant<[string, string][]>([]) },
    { weight: 1, arbitrary: stray.map((one) => [one]) },
  )
  return fc.tuple(...parts, strays).map((all) => all.flat())
}

function requestOf(path: string, method: string, operation: Operation): fc.Arbitrary<Drawn> {
  const parameters = operation.parameters ?? []
  const inPath = parameters.filter((one) => one.in === 'path')
  const names = parameters.filter((one) => one.in === 'header')
  const paths = fc
    .tuple(...inPath.map((one) => pathValue(path, one)))
    .map((values) =>
      inPath.reduce((text, one, index) => text.replace(`{${one.name}}`, () => values[index] ?? ''), path),
    )
  const declared = fc.tuple(
    ...names.map((one) => fitting(one.schema, one.name).map((value) => [one.name, String(value)] as const)),
  )
  const stray = fc.oneof(
    { weight: 6, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(header, { maxLength: 2 }) },
  )
  const verb = fc.oneof(
    { weight: 40, arbitrary: fc.constant(method.toUpperCase()) },
    { weight: 1, arbitrary: fc.constantFrom('PATCH', 'PUT', 'DELETE', 'OPTIONS', 'HEAD', 'POST', 'GET') },
  )
  return fc
    .record({
      method: verb,
      path: paths,
      query: queryOf(parameters.filter((one) => one.in === 'query')),
      headers: fc.tuple(declared, stray).map(([a, b]) => unique([...a, ...b])),
      caller: callerOf(path),
      body: bodyOf(operation),
      // A route that takes either a body or a query refuses both.
      keepsBoth: fc.nat({ max: 9 }).map((n) => n === 0),
      prefersQuery: fc.boolean(),
    })
    .map(({ keepsBoth, prefersQuery, ...drawn }) => {
      const whole = { operation: `${method.toUpperCase()} ${path}`, ...drawn }
      const takesEither = operation.requestBody?.required === false && drawn.query.length > 0
      if (!takesEither || keepsBoth) return whole
      return prefersQuery ? { ...whole, body: undefined } : { ...whole, query: [] }
    })
}

/** Keeps one header of each name; raw-socket.test.ts sends repeated ones. */
function unique(headers: (readonly [string, string])[]): (readonly [string, string])[] {
  return [...new Map(headers).entries()]
}

/**
 * Draws operations less often if they are slow, end the callers of concurrent requests or take no input, and more often if
 * few requests succeed.
 */
const WEIGHTS: Record<string, number> = {
  'post /v1/credentials/{backend}': 24,
  'get /v1/credentials/{backend}': 24,
  'put /v1/admin/backends/{name}': 24,
  'delete /v1/active/{id}': 24,
  'get /backends/{backend}/token': 16,
  'get /api/v1/credentials/{id}': 16,
  'get /v1/enroll/{id}/status': 24,
  'get /': 2,
  'get /health': 2,
  'get /readyz': 2,
  'get /docs': 2,
  'get /openapi.json': 2,
  'get /.well-known/jwks.json': 2,
  'get /.well-known/openid-configuration': 2,
  'get /.well-known/oauth-authorization-server': 2,
  'post /v1/admin/keys/rotate': 1,
  // Five megabytes.
  'get /docs/scalar.js': 1,
  'delete /v1/self': 1,
  'delete /v1/admin/agents/{name}': 2,
  'post /v1/admin/agents/{name}/rotate': 3,
  'patch /v1/admin/agents/{name}': 4,
  'delete /v1/admin/backends/{name}': 4,
}

/** A random request for a random operation. */
export function anyRequest(paths: Record<string, Record<string, Operation>>): fc.Arbitrary<Drawn> {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      weight: WEIGHTS[`${method} ${path}`] ?? 8,
      arbitrary: requestOf(path, method, operation),
    })),
  )
  return fc.oneof(...all)
}
