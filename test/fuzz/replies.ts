import { Ajv, type ValidateFunction } from 'ajv'
import ajvFormats from 'ajv-formats'
import { PROBLEMS } from '../../src/domain/problems.ts'
import type { RawReply } from '../support/keep-alive.ts'
import type { Operation } from './requests.ts'
import { MARK, type Schema } from './values.ts'

const OAUTH_ERRORS =
  'invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type unsupported_token_type invalid_scope invalid_target invalid_token insufficient_scope temporarily_unavailable'.split(
    ' ',
  )
/** Public documents; a list of revoked certificates lasts a second. */
const CACHED = ['public, max-age=300', 'public, max-age=1']

/** Forbids properties that the schema does not name. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  const isObject = inner['type'] === 'object' && inner['properties'] !== undefined
  return isObject && inner['additionalProperties'] === undefined
    ? { ...inner, additionalProperties: false }
    : inner
}

export interface Asked {
  readonly operation: string
  readonly method: string
  readonly bearer: string | undefined
  /** Whether an unreachable upstream may cause a failure. */
  readonly mayFailUpstream: boolean
}

export interface Document {
  readonly paths: Record<string, Record<string, Operation>>
}

/** Returns a check that describes what is wrong with a reply, or returns undefined. */
export function createReplyCheck({ paths }: Document) {
  const ajv = new Ajv({ strict: true, strictTypes: false, allErrors: false, allowUnionTypes: true })
  ajvFormats.default(ajv)
  ajv.addVocabulary(['example', 'x-secret'])
  const documented = new Map<string, Operation['responses']>()
  for (const [path, methods] of Object.entries(paths))
    for (const [method, operation] of Object.entries(methods))
      documented.set(`${method.toUpperCase()} ${path}`, operation.responses)
  const compiled = new Map<string, ValidateFunction>()

  function validate(key: string, schema: Schema, value: unknown): string | undefined {
    let check = compiled.get(key)
    if (check === undefined) {
      check = ajv.compile(closed(schema) as object)
      compiled.set(key, check)
    }
    return check(value) ? undefined : `the body does not match its schema: ${ajv.errorsText(check.errors)}`
  }

  function checkBody(asked: Asked, reply: RawReply): string | undefined {
    const [verb] = asked.operation.split(' ')
    const isHead = asked.method === 'HEAD'
    const same = verb === asked.method || (isHead && verb === 'GET')
    const responses = documented.get(asked.operation) ?? {}
    const status = String(reply.status)
    const range = `${status[0]}XX`
    const response = responses[status] ?? responses[range]
    if (!same) return reply.status < 400 ? 'an undocumented method was answered' : undefined
    if (response === undefined) return 'the status is not documented'
    if (isHead || reply.status === 204) return reply.body === '' ? undefined : 'an unexpected body'
    const [media = '', content] = Object.entries(response.content ?? {})[0] ?? []
    const sent = reply.headers.get('content-type') ?? ''
    if (sent.split(';')[0] !== media) return `the type is ${sent}, not ${media}`
    if (media !== 'application/json' || content?.schema === undefined) return undefined
    return validate(
      `${asked.operation} ${responses[status] === undefined ? range : status}`,
      content.schema,
      JSON.parse(reply.body),
    )
  }

  /** The document has an example of each error that it lists. */
  function checkCode(asked: Asked, reply: RawReply): string | undefined {
    if (reply.status < 400 || asked.method === 'HEAD') return undefined
    const responses = documented.get(asked.operation) ?? {}
    const response = responses[String(reply.status)] ?? responses[`${String(reply.status)[0]}XX`]
    const listed = Object.values(response?.content?.['application/json']?.examples ?? {})
    const { error } = JSON.parse(reply.body)
    const codes = listed.map(({ value }) => value.error.code ?? value.error)
    return codes.includes(error.code ?? error)
      ? undefined
      : `${error.code ?? error} is not listed with ${reply.status}`
  }

  return (asked: Asked, reply: RawReply): string | undefined => {
    if (reply.status >= 500 && !(asked.mayFailUpstream && [502, 503, 504].includes(reply.status)))
      return 'the server failed'
    return (
      checkHeaders(reply) ??
      checkBody(asked, reply) ??
      checkCode(asked, reply) ??
      (reply.status >= 400 ? checkError(asked, reply) : undefined)
    )
  }
}

function checkHeaders({ status, headers }: RawReply): string | undefined {
  const cache = headers.get('cache-control')
  if (cache !== 'no-store' && !(status === 200 && CACHED.includes(cache ?? '')))
    return `Cache-Control is ${cache}`
  if (headers.get('x-content-type-options') !== 'nosniff') return 'X-Content-Type-Options is missing'
  if (!/^req_[0-9a-z]{26}$/.test(headers.get('x-request-id') ?? '')) return 'X-Request-Id is missing'
  if (headers.has('x-powered-by') || headers.has('server')) return 'a header reveals the framework'
  if (status === 405 && !headers.get('allow')) return 'Allow is missing'
  if ((status === 429 || status === 503) && !/^[1-9]\d*$/.test(headers.get('retry-after') ?? ''))
    return 'Retry-After is missing'
  return undefined
}

function checkError(asked: Asked, reply: RawReply): string | undefined {
  const all = `${reply.body}\n${[...reply.headers].map(([key, value]) => `${key}: ${value}`).join('\n')}`
  if (all.includes(MARK)) return 'the error repeats the input'
  if (asked.bearer !== undefined && asked.bearer.length > 20 && all.includes(asked.bearer.slice(7)))
    return 'the error repeats the bearer token'
  if (/ck[rs]_[0-9a-f]{8}|eyJ[\w-]+\.|PRIVATE KEY|FST_|node_modules|\.ts:\d/.test(all))
    return 'the error contains a secret or an internal name'
  if (asked.method === 'HEAD') return undefined
  const body = JSON.parse(reply.body)
  return asked.operation.includes(' /oauth/') ? checkOAuthError(reply, body) : checkProblem(reply, body)
}

function checkOAuthError({ status }: RawReply, body: Record<string, unknown>): string | undefined {
  if (Object.keys(body).join() !== 'error,error_description')
    return 'the error does not have the form of RFC 6749'
  return OAUTH_ERRORS.includes(String(body['error']))
    ? undefined
    : `the error is ${body['error']} with ${status}`
}

function checkProblem({ status, headers }: RawReply, body: Record<string, unknown>): string | undefined {
  const error = body['error'] as Record<string, unknown>
  // `reason`: only where the upstream of a backend could not be used.
  const fields = 'reason' in error ? 'code,message,request_id,reason' : 'code,message,request_id'
  if (Object.keys(body).join() !== 'error' || Object.keys(error).join() !== fields)
    return 'the error does not have the documented form'
  const code = String(error['code'])
  if (!Object.hasOwn(PROBLEMS, code)) return `the code ${code} is undocumented`
  if (PROBLEMS[code as keyof typeof PROBLEMS].status !== status) return `${code} with status ${status}`
  if (error['request_id'] !== headers.get('x-request-id')) return 'the request ids differ'
  const challenge = headers.get('www-authenticate')
  if (status === 401 && !/^(Bearer|Basic) realm="mayfly"/.test(challenge ?? ''))
    return 'the challenge is missing'
  if (code === 'insufficient_scope' && !challenge?.includes('error="insufficient_scope"'))
    return 'the challenge does not name the error'
  return undefined
}
