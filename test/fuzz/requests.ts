import fc from 'fast-check'
import {
  broken,
  brokenText,
  fitting,
  fittingObject,
  MARK,
  nearly,
  pooled,
  type Schema,
  sane,
} from './values.ts'

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: Schema
}

export interface Operation {
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>
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

const JSON_MEDIA = 'application/json'
const FORM_MEDIA = 'application/x-www-form-urlencoded'

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

/** By a part of the path. */
const POOLS = Object.entries({
  'backend}': 'backend',
  '/backends/': 'backend',
  '/agents/': 'agent',
  '/plugins/': 'kind',
  '/request/': 'request',
})
const CREDENTIALS = /credential|\/active\/|\/tokens\//

function pathValue(path: string, parameter: Parameter): fc.Arbitrary<string> {
  const other = CREDENTIALS.test(path) ? 'credential' : 'enrollment'
  const kind = POOLS.find(([part]) => path.includes(part))?.[1] ?? other
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

function jsonBody(schema: Schema): fc.Arbitrary<Drawn['body']> {
  const json = (value: unknown) => ({ type: JSON_MEDIA, text: JSON.stringify(value) })
  const spoiled = fc
    .tuple(fittingObject(schema), fc.nat({ max: 11 }))
    .map(([value, how]) => spoil(JSON.stringify(value), how))
  return fc.oneof(
    { weight: 8, arbitrary: sane(schema).map(json) },
    { weight: 4, arbitrary: fittingObject(schema).map(json) },
    { weight: 6, arbitrary: nearly(schema).map(json) },
    { weight: 1, arbitrary: broken(schema).map(json) },
    { weight: 2, arbitrary: spoiled },
    { weight: 1, arbitrary: fc.constant(undefined) },
  )
}

/** Turns valid JSON into invalid JSON, or sends it with another type. */
function spoil(text: string, how: number): NonNullable<Drawn['body']> {
  const inside = text.slice(1, -1)
  const comma = inside === '' ? '' : ','
  const texts = [
    `{${inside}${comma}"${MARK}":1,"${MARK}":1}`,
    `${text}${MARK}`,
    text.slice(0, -1),
    `\ufeff${text}`,
    `{${inside}${comma}"n":1e999}`,
    `{${inside}${comma}"n":${'9'.repeat(400)}}`,
    `${'['.repeat(500)}${']'.repeat(500)}`,
    `{"__proto__":{"a":"${MARK}"}${comma}${inside}}`,
    `{"a":"\\ud800${MARK}"}`,
    '',
  ]
  if (how === 10) return { type: 'text/plain', text }
  if (how === 11) return { type: undefined, text }
  return { type: JSON_MEDIA, text: texts[how] ?? '' }
}

function formBody(schema: Schema): fc.Arbitrary<Drawn['body']> {
  const form = (value: Record<string, unknown>) => ({
    type: FORM_MEDIA,
    text: Object.entries(value)
      .map(([key, one]) => `${encode(key)}=${encode(typeof one === 'string' ? one : JSON.stringify(one))}`)
      .join('&'),
  })
  const client = fc
    .nat({ max: 63 })
    .map((index) => ({ client_id: `{{clientId:${index}}}`, client_secret: `{{clientSecret:${index}}}` }))
  const { client_id: _, client_secret: __, ...rest } = schema.properties ?? {}
  const { client_assertion: ___, client_assertion_type: ____, ...plain } = rest
  const right = fc
    .tuple(fc.oneof(sane(schema), fittingObject({ ...schema, properties: plain })), client)
    .map(([value, who]) => form({ ...value, ...who }))
  return fc.oneof(
    { weight: 8, arbitrary: right },
    {
      weight: 4,
      arbitrary: fc
        .tuple(nearly({ ...schema, properties: rest }), client)
        .map(([value, who]) => form({ ...who, ...value })),
    },
    { weight: 1, arbitrary: right.map((body) => ({ ...body, text: `${body.text}&client_id=${MARK}` })) },
    { weight: 1, arbitrary: right.map((body) => ({ ...body, type: JSON_MEDIA })) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(`a=%zz${MARK}`, '&&&', `=${MARK}`, '%00=1')
        .map((text) => ({ type: FORM_MEDIA, text })),
    },
  )
}

/** Encodes everything except the placeholders. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(/%7B%7B(\w+)%3A(\d+)%7D%7D/g, '{{$1:$2}}')
}

function bodyOf(operation: Operation): fc.Arbitrary<Drawn['body']> {
  const content = operation.requestBody?.content ?? {}
  const json = content[JSON_MEDIA]?.schema
  if (json !== undefined) return jsonBody(json)
  const form = content[FORM_MEDIA]?.schema
  if (form !== undefined) return formBody(form)
  return fc.oneof(
    { weight: 30, arbitrary: fc.constant(undefined) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        { type: JSON_MEDIA, text: `{"${MARK}":1}` },
        { type: undefined, text: MARK },
      ),
    },
  )
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
      // The server refuses a request that authenticates in two ways.
      caller: path.startsWith('/oauth/') ? mostlyNone : caller,
      body: bodyOf(operation),
    })
    .map((drawn) => ({ operation: `${method.toUpperCase()} ${path}`, ...drawn }))
}

/** Keeps one header of each name; raw-socket.test.ts sends repeated ones. */
function unique(headers: (readonly [string, string])[]): (readonly [string, string])[] {
  return [...new Map(headers).entries()]
}

/** Less often, if slow or ending the callers of concurrent requests. */
const WEIGHTS: Record<string, number> = {
  'post /v1/admin/keys/rotate': 1,
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
