import { describe, expect, test } from 'vitest'
import { MayflyError, type MayflyErrorCode, UnreachableError } from '../../client/errors.ts'
import { CliError, failureOf, usage } from './failure.ts'
import { Interrupted } from './surroundings.ts'

const refusal = (code: MayflyErrorCode, status: number) => new MayflyError({ code, status, message: 'No.' })

test.each<[MayflyErrorCode, number, number]>([
  ['unauthorized', 401, 4],
  ['invalid_client', 401, 4],
  ['scope_not_allowed', 403, 5],
  ['insufficient_scope', 403, 5],
  ['ttl_exceeded', 400, 5],
  ['invalid_scope', 400, 5],
  ['invalid_target', 400, 5],
  ['invalid_request', 400, 2],
  ['unexpected_reply', 502, 3],
  ['backend_not_found', 404, 1],
  ['conflict', 409, 1],
  ['rate_limited', 429, 1],
  ['store_unavailable', 503, 1],
  ['internal_error', 500, 1],
])('%s (%i) ends with %i', (code, status, exitCode) => {
  expect(failureOf(refusal(code, status))).toMatchObject({ code, exitCode, message: 'No.' })
})

const inWords = (
  code: MayflyErrorCode,
  message: string,
  more: { scope?: string; retryAfterSeconds?: number } = {},
) => {
  const failure = failureOf(new MayflyError({ code, status: 403, message, ...more }))
  return [failure.message, failure.hint].filter(Boolean).join(' ')
}

test.each([
  ['x`; touch owned; `'],
  ['demo$(touch owned)'],
  ["demo'; touch owned; '"],
  ['demo --reason x'],
  ['--help'.padEnd(257, 'x')],
  [''],
  ['a\nb'],
])('the scope %j of a server becomes no command in a hint', (scope) => {
  expect(inWords('insufficient_scope', 'No.', { scope })).toBe('No.')
})

test('a scope in a hint is one word for a shell', () => {
  expect(inWords('insufficient_scope', 'No.', { scope: 'demo:*' })).toBe(
    "No. It needs demo:*. Request it with `mayfly request 'demo:*'`.",
  )
})

test.each<[MayflyErrorCode, string, { scope?: string; retryAfterSeconds?: number }, string]>([
  [
    'insufficient_scope',
    'This requires the scope admin:agents:read.',
    { scope: 'admin:agents:read' },
    'This requires the scope admin:agents:read. Request it with `mayfly request admin:agents:read`.',
  ],
  [
    'backend_unavailable',
    'The upstream system cannot be reached; try again later.',
    {},
    'The upstream system cannot be reached. Try again. If the problem persists, tell the administrator.',
  ],
  [
    'rate_limited',
    'Too many requests; wait as long as Retry-After says.',
    { retryAfterSeconds: 5 },
    'Too many requests. Try again in 5 s.',
  ],
  [
    'unauthorized',
    'Authentication is required: send "Authorization: Bearer <token>".',
    {},
    'Authentication is required. The login is wrong, expired or deleted. Run `mayfly login` or `mayfly enroll`.',
  ],
])('%s says once what is wrong and what to do', (code, message, more, whole) => {
  expect(inWords(code, message, more)).toBe(whole)
})

test.each([
  ['ECONNREFUSED', 'refused'],
  ['ENOTFOUND', 'dns'],
  ['ETIMEDOUT', 'timeout'],
  ['ECONNRESET', 'reset'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_untrusted'],
  ['CERT_HAS_EXPIRED', 'tls_expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_hostname'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_protocol'],
  ['ENOENT', 'socket'],
  ['EWHATEVER', 'network'],
])('no answer: %s is %s, and 3', (code, reason) => {
  const cause = new AggregateError([Object.assign(new Error('inner'), { code })])
  const failure = failureOf(new UnreachableError('https://x', cause))
  expect(failure).toMatchObject({ code: `unreachable_${reason}`, exitCode: 3 })
  expect(failure.message).toMatch(/^Cannot reach https:\/\/x: .*\.$/)
  expect(failure.hint).toMatch(/\.$/)
})

describe('system errors', () => {
  test.each([
    [{ code: 'ENOSPC', syscall: 'write' }, 'the output: the disk is full.'],
    [{ code: 'EACCES', path: '/x/y' }, '/x/y: permission denied.'],
    [{ code: 'ENOENT', path: '/x/y' }, '/x/y: no such file or directory.'],
  ])('%j', (facts, message) => {
    expect(failureOf(Object.assign(new Error('raw'), facts))).toMatchObject({ message, exitCode: 1 })
  })

  test('anything unforeseen is its first line, without a stack', () => {
    expect(failureOf(new TypeError('first\n    at second'))).toMatchObject({ message: 'first', exitCode: 1 })
    expect(failureOf('thrown text')).toMatchObject({ message: 'thrown text', exitCode: 1 })
  })
})

test('signals and closed pipes are silent, with the exit code of a program that they ended', () => {
  expect(failureOf(new Interrupted(2)).exitCode).toBe(130)
  expect(failureOf(new Interrupted(15)).exitCode).toBe(143)
  expect(failureOf(Object.assign(new Error('x'), { code: 'EPIPE' })).exitCode).toBe(141)
})

test('our own say what they say', () => {
  expect(failureOf(usage('Wrong.', 'Right.'))).toMatchObject({
    exitCode: 2,
    message: 'Wrong.',
    hint: 'Right.',
  })
  expect(failureOf(new CliError('x', 'y'))).toMatchObject({ exitCode: 1, hint: undefined })
})
