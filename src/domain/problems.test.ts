import { expect, test } from 'vitest'
import { invalid, PROBLEMS, Problem, type ProblemCode } from './problems.ts'

/** The six codes of the specification, those of decisions §1.5, and those that operators need, independent of the table. */
const EXPECTED: Record<string, number> = {
  invalid_request: 400,
  ttl_exceeded: 400,
  unauthorized: 401,
  scope_not_allowed: 403,
  insufficient_scope: 403,
  not_allowed: 403,
  confirmation_required: 403,
  backend_not_found: 404,
  credential_not_found: 404,
  agent_not_found: 404,
  operator_not_found: 404,
  enrollment_not_found: 404,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  gone: 410,
  payload_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  misdirected_request: 421,
  rate_limited: 429,
  headers_too_large: 431,
  internal_error: 500,
  backend_error: 502,
  store_unavailable: 503,
  audit_unavailable: 503,
  backend_unavailable: 503,
  backend_timeout: 504,
}

test('has exactly the codes and statuses of the specification and the decisions', () => {
  const table = Object.fromEntries(Object.entries(PROBLEMS).map(([code, { status }]) => [code, status]))
  expect(table).toEqual(EXPECTED)
})

test.each(Object.keys(PROBLEMS) as ProblemCode[])('%s', (code) => {
  const problem = new Problem(code)
  expect(problem).toMatchObject({ code, status: PROBLEMS[code].status, message: PROBLEMS[code].message })
  expect(problem).toBeInstanceOf(Error)
  expect(problem.message).toMatch(/^[A-Z][\x20-\x7e]+\.$/)
  expect(problem.invalidToken).toBe(false)
})

test('keeps the private detail out of the public body', () => {
  const cause = new Error('upstream text')
  const problem = new Problem('backend_error', {
    detail: 'host db-7',
    cause,
    retryAfterSeconds: 3,
    scope: 'a:b',
    invalidToken: true,
  })
  expect(problem.message).not.toMatch(/db-7|upstream text/)
  expect(problem).toMatchObject({
    detail: 'host db-7',
    cause,
    retryAfterSeconds: 3,
    scope: 'a:b',
    invalidToken: true,
  })
})

test('invalid is the shorthand', () => {
  expect(invalid('"x" is wrong.', 'why')).toMatchObject({
    code: 'invalid_request',
    message: '"x" is wrong.',
    detail: 'why',
  })
  expect(invalid('"x" is wrong.').detail).toBeUndefined()
})
