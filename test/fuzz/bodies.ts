import fc from 'fast-check'
import { JWT_BEARER, JWT_TYPE, TOKEN_EXCHANGE } from '../support/keyless.ts'
import type { Drawn, Operation } from './requests.ts'
import { broken, fitting, fittingObject, MARK, nearly, pooled, type Schema, sane } from './values.ts'

const JSON_MEDIA = 'application/json'
const FORM_MEDIA = 'application/x-www-form-urlencoded'

function jsonBody(schema: Schema): fc.Arbitrary<Drawn['body']> {
  if (schema.oneOf !== undefined) return fc.oneof(...schema.oneOf.map(jsonBody))
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

function formBody({ oneOf = [], ...own }: Schema): fc.Arbitrary<Drawn['body']> {
  // The branches differ in how the client authenticates, which this draws itself.
  const schema: Schema = {
    ...own,
    ...oneOf[0],
    properties: Object.assign({}, own.properties, ...oneOf.map(({ properties }) => properties)),
  }
  const form = (value: Record<string, unknown>) => ({
    type: FORM_MEDIA,
    text: Object.entries(value)
      .map(([key, one]) => `${encode(key)}=${encode(typeof one === 'string' ? one : JSON.stringify(one))}`)
      .join('&'),
  })
  const { client_id: clientId, client_secret: secret } = schema.properties ?? {}
  // A public client has no secret, and one name.
  const client: fc.Arbitrary<Record<string, unknown>> =
    clientId !== undefined && secret === undefined
      ? fc.record({ client_id: fitting(clientId) })
      : fc.nat({ max: 63 }).map((index) => ({
          client_id: `{{clientId:${index}}}`,
          client_secret: `{{clientSecret:${index}}}`,
        }))
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
    ...(rest['assertion'] === undefined ? [] : [{ weight: 3, arbitrary: keyless.map(form) }]),
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

/** A workload has a token of somebody else, and no client. */
const keyless: fc.Arbitrary<Record<string, unknown>> = fc
  .tuple(pooled('workload'), fc.boolean(), fc.constantFrom({}, { scope: 'openid' }, { scope: 'tok:read' }))
  .map(([token, isExchange, more]) =>
    isExchange
      ? { grant_type: TOKEN_EXCHANGE, subject_token: token, subject_token_type: JWT_TYPE, ...more }
      : { grant_type: JWT_BEARER, assertion: token, ...more },
  )

/** Encodes everything except the placeholders. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(/%7B%7B(\w+)%3A(\d+)%7D%7D/g, '{{$1:$2}}')
}

export function bodyOf(operation: Operation): fc.Arbitrary<Drawn['body']> {
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
