import fc from 'fast-check'

/** The subset of JSON Schema that the OpenAPI document uses. */
export interface Schema {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  examples?: unknown[]
  pattern?: string
  format?: string
  enum?: unknown[]
  additionalProperties?: Schema | boolean
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
  minimum?: number
  maximum?: number
}

/** Part of every hostile string, so that a test can see whether an error repeats it. */
export const MARK = 'Zx9Q'

/** `{{kind:n}}` is a placeholder for the n-th resource of the pool at the time of sending. */
export const pooled = (kind: string) => fc.nat({ max: 63 }).map((index) => `{{${kind}:${index}}}`)
const or = (...texts: string[]) => fc.constantFrom(...texts)

const HOSTILE_TEXTS = [
  `${MARK}\u0000`,
  `${MARK}\r\nX-Injected: 1`,
  `${MARK}\u001b[31m\u0007`,
  `${MARK}'; DROP TABLE agents; --`,
  `../../${MARK}`,
  `..%2f${MARK}`,
  `${MARK}\ud800`,
  `\udc00${MARK}`,
  `${MARK}\u202e\u2028\ufeff`,
  `<script>${MARK}</script>`,
  `\${jndi:ldap://${MARK}}`,
  `{{${MARK}}}`,
  `%00${MARK}`,
  `${MARK}é漢🦟`,
  `"${MARK}\\`,
  '__proto__',
  'constructor',
  'toString',
  '',
  ' ',
  '.',
  '..',
  '*',
  'null',
  '-1',
  '1e400',
]

const hostileText = fc.oneof(
  { weight: 3, arbitrary: or(...HOSTILE_TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 24 }).map((text) => `${MARK}${text}`) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 24 }).map((text) => `${MARK}${text}`) },
)

/** A string of this length that starts with the mark if it fits. */
const ofLength = (length: number) =>
  length <= MARK.length ? 'a'.repeat(Math.max(0, length)) : MARK + 'a'.repeat(length - MARK.length)

const boundaries = ({ minLength = 0, maxLength = 300 }: Schema) =>
  fc.constantFrom(minLength - 1, minLength, maxLength, maxLength + 1, 4_000).map(ofLength)

const mostly = (right: fc.Arbitrary<unknown>, wrong: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 4, arbitrary: right }, { weight: 1, arbitrary: wrong })

const scope = mostly(
  or('tok:*', 'tok:read', 'tok', '*', 'admin:*', 'admin:agents:read', 'dead:x', 'x', 'a:b:c', 'tok:tok'),
  or('tok:r*', '**', ':', 'a::b', 'tok:', 'a b'),
)
/** Scopes that the backends can issue, and others. */
const askedScopes = mostly(
  fc.constantFrom(['read'], ['read:a'], ['read:*', 'read'], ['tok:read'], []),
  fc.array(scope, { maxLength: 3 }),
)
const duration = mostly(
  or('10m', '1h', '45s', '1h30m', '24h', '1d', '1000ms'),
  or('0s', '-1h', '1.5h', '1m1h', '1h1h', '999999999999w', '1e3s', '', '10', 'm', '1ms', '25h', ' 1h'),
)
const time = fc.oneof(
  or('24h', '1ms', '2026-01-31T12:00:00Z', '2026-01-31', '9999-12-31T23:59:59.999Z', '0000-01-01'),
  or('2026-02-30', '+275760-09-13', 'now', '2026-01-31T25:00:00Z', '999999w', '2026-01-31T12:00:00+99:99'),
)
const name = mostly(
  fc.nat({ max: 400 }).map((n) => `f-${n}`),
  or('admin', 'Local', '-x', 'a b', 'é', 'x'.repeat(128), 'x'.repeat(129), 'a/b'),
)
const publicKey = fc.oneof(
  fc.constant({ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }),
  fc.constant({
    kty: 'EC',
    crv: 'P-256',
    x: 'axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY',
    y: 'T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU',
  }),
  fc.constant({ kty: 'OKP', crv: 'Ed25519', x: 'AA' }),
  fc.constant({ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }),
)
/** `port` 1: nothing listens there. */
const config = mostly(
  fc.constant({ audience: 'demo' }),
  fc.oneof(
    fc.constant({ audience: 'demo' }),
    fc.constant({ audience: ['a', 'b'], algorithm: 'EdDSA', claims: { team: MARK } }),
    fc.constant({ audience: 'x', claims: { sub: MARK } }),
    fc.constant({ audience: 'x', signing_key: MARK }),
    fc.constant({ audience: 'x', signing_key: '[redacted]' }),
    fc.constant({ host: '127.0.0.1', port: 1, local: true, database: 'd', username: 'u', password: MARK }),
    fc.constant({ host: MARK, port: '1', database: 1 }),
    fc.constant({ [MARK]: 1 }),
    fc.constant({}),
  ),
)

/** The author is no agent of the pool, which does not check identities. */
const commit = (author: string, more = '') =>
  Buffer.from(
    `tree ${'a'.repeat(40)}\nauthor ${author}\ncommitter a <a@b> 1 +0000\n${more}\n${MARK}\n`,
  ).toString('base64')
const gitObject = mostly(
  fc.constant(commit('a <a@b> 1 +0000')),
  or(
    commit(`${MARK} <a@b>`),
    commit('a <a@b> 1 +0000', `${MARK} x\n`),
    commit('a\0 <a@b> 1 +0000'),
    `${MARK}==`,
    MARK,
  ),
)

/** Values for fields with these names: mostly valid, sometimes nearly valid. */
const HINTS: Record<string, fc.Arbitrary<unknown>> = {
  backend: mostly(pooled('backend'), or('none')),
  ttl: duration,
  expires_in: duration,
  default_ttl: duration,
  max_ttl: duration,
  grace: duration,
  since: time,
  until: time,
  name,
  scope,
  scopes: fc.oneof(askedScopes, fc.array(scope, { maxLength: 4 })),
  allowed_scopes: fc.oneof(fc.constant(null), fc.array(scope, { maxLength: 4 })),
  type: or('jwt', 'jwt', 'postgres', 'github'),
  rate: fc.oneof(fc.constant(null), or('10/hour', '1000000/second', '0/hour', '1/x', 'x')),
  cursor: pooled('cursor'),
  credential: pooled('credential'),
  agent: fc.oneof(pooled('agent'), pooled('agentId')),
  agent_id: pooled('agentId'),
  public_key: publicKey,
  config,
  params: mostly(fc.constant({}), fc.constantFrom({ audience: 'demo' }, { audience: 7, x: MARK })),
  data: gitObject,
  format: or('git', 'jsonl', 'csv', 'GIT'),
  token: fc.oneof(pooled('jwt'), pooled('bearer'), pooled('credentialToken'), or(`${MARK}.a.b`, 'eyJ')),
  grant_type: or('client_credentials', 'client_credentials', 'password'),
  audience: fc.oneof(pooled('issuer'), or(`https://${MARK}.test`)),
  resource: pooled('issuer'),
  client_assertion_type: or('urn:ietf:params:oauth:client-assertion-type:jwt-bearer', MARK),
  client_assertion: fc.oneof(pooled('jwt'), pooled('proof')),
  'enrollment-proof': fc.oneof(pooled('proof'), pooled('jwt'), or(MARK, 'a.b.c')),
}

/** Values that match the schema, or a hint for the field. */
export function fitting(schema: Schema, field = ''): fc.Arbitrary<unknown> {
  const hint = HINTS[field]
  if (hint !== undefined) return hint
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  const branches = schema.anyOf ?? schema.oneOf
  if (branches !== undefined) return fc.oneof(...branches.map((one) => fitting(one)))
  switch (schema.type) {
    case 'string':
      return fc.string({ minLength: schema.minLength ?? 0, maxLength: Math.min(schema.maxLength ?? 20, 20) })
    case 'integer':
    case 'number':
      return fc.constantFrom(schema.minimum ?? 0, 2, 10, schema.maximum ?? 1_000)
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(fitting(schema.items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 3, 3),
      })
    case 'object':
      return fittingObject(schema)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

export function fittingObject(schema: Schema): fc.Arbitrary<Record<string, unknown>> {
  const entries = Object.entries(schema.properties ?? {})
  if (entries.length === 0) {
    const free = fc.jsonValue({ maxDepth: 2 })
    return fc.dictionary(fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 8 }), free, {
      maxKeys: 4,
    })
  }
  const parts = Object.fromEntries(entries.map(([key, part]) => [key, fitting(part, key)]))
  const requiredKeys = (schema.required ?? []).filter((key) => key in parts)
  return fc.record(parts, { requiredKeys }) as fc.Arbitrary<Record<string, unknown>>
}

const deep = (depth: number): unknown => (depth === 0 ? MARK : { a: deep(depth - 1) })

/** Valid values, so that the request passes every check. */
const SANE: Record<string, fc.Arbitrary<unknown>> = {
  backend: or('tok', 'tok', 'tok2', 'dead'),
  ttl: or('10m', '45s', '1h30m'),
  expires_in: or('10m', '1h30m'),
  default_ttl: or('5m', '10m'),
  max_ttl: or('2h', '24h'),
  scopes: fc.constantFrom(['read'], ['read:a'], ['read', 'read:*']),
  allowed_scopes: fc.constantFrom(null, ['read:*'], ['read', 'x']),
  name: fc.nat({ max: 5_000 }).map((n) => `f-${n}`),
  type: or('jwt'),
  config: fc.constantFrom({ audience: 'demo' }, { audience: ['a', 'b'], algorithm: 'EdDSA' }),
  params: fc.constant({}),
  metadata: fc.constantFrom({}, { job: 7, '\u001b': 'é漢🦟' }),
  data: fc.constant(commit('a <a@b> 1 +0000')),
  rate: or('1000000/second'),
  description: or('', 'what it is for'),
  reason: or('because'),
  host: or('laptop'),
  note: or('a note'),
  max_active: fc.constant(null),
  public_key: fc.constant({ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }),
  grant_type: or('client_credentials'),
  scope: or('openid', 'tok:read', 'openid tok:read'),
  audience: pooled('issuer'),
  resource: pooled('issuer'),
  token: fc.oneof(pooled('jwt'), pooled('bearer'), pooled('credentialToken')),
}

/** All required fields and some optional fields with known valid values. */
export function sane(schema: Schema): fc.Arbitrary<Record<string, unknown>> {
  const required = [...(schema.required ?? []), 'grant_type']
  const parts = Object.entries(schema.properties ?? {})
    .filter(([key]) => required.includes(key) || SANE[key] !== undefined)
    .map(([key, part]) => [key, SANE[key] ?? fitting(part, key)] as const)
  const requiredKeys = parts.map(([key]) => key).filter((key) => required.includes(key))
  return fc.record(Object.fromEntries(parts), { requiredKeys }) as fc.Arbitrary<Record<string, unknown>>
}

/** Values that mostly violate the schema. */
export function broken(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof(
    hostileText,
    boundaries(schema),
    fc.constantFrom<unknown>(null, true, -1, 0, 1.5, 1e308, 2 ** 53 + 2, -(2 ** 31), [], {}, [[]]),
    fc.constantFrom<unknown>([MARK], { [MARK]: MARK }, deep(6), deep(7), deep(12)),
    fc.nat({ max: 70 }).map((count) => Array.from({ length: count }, () => MARK)),
    fc
      .constantFrom(64, 65)
      .map((count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`${MARK}${i}`, i]))),
    fc.constantFrom(8_000, 8_400).map((size) => ({ a: ofLength(size) })),
  )
}

/** Invalid text for paths, queries and headers. */
export const brokenText = (schema: Schema) => fc.oneof(hostileText, boundaries(schema))

/** An object that matches the schema except for one invalid, missing or additional field. */
export function nearly(schema: Schema): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(schema.properties ?? {})
  const extra = fc.constantFrom(MARK, '__proto__', 'constructor', 'toString', 'Scopes', 'id', '')
  const added = fc.tuple(fittingObject(schema), extra, broken({})).map(([whole, key, value]) => {
    const copy = { ...whole }
    Object.defineProperty(copy, key, { value, enumerable: true, configurable: true })
    return copy
  })
  if (fields.length === 0) return added
  const change = fc
    .constantFrom(...fields)
    .chain(([key, part]) => broken(part).map((value) => [key, value] as const))
  const changed = fc
    .tuple(fittingObject(schema), change)
    .map(([whole, [key, value]]) => ({ ...whole, [key]: value }))
  const without = fc.tuple(fittingObject(schema), fc.constantFrom(...fields)).map(([whole, [key]]) => {
    const { [key]: _, ...rest } = whole
    return rest
  })
  return fc.oneof(
    { weight: 4, arbitrary: changed },
    { weight: 1, arbitrary: without },
    { weight: 2, arbitrary: added },
  )
}
