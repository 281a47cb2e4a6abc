import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuMsOf } from '../../test/support/cpu-time.ts'
import { Secret } from '../domain/secret.ts'
import { createLogger, type LoggerOptions } from './log.ts'

function capture(options: Partial<LoggerOptions> & { isTTY?: boolean } = {}) {
  const lines: string[] = []
  const { isTTY = false, ...rest } = options
  const log = createLogger({
    level: 'debug',
    format: 'json',
    destination: { write: (line) => lines.push(line), isTTY },
    ...rest,
  })
  return { log, lines, text: () => lines.join('') }
}

const HEX48 = 'a1b2c3d4e5f6'.repeat(4)
const KEY_BODY = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC'
/** Each with the part that must not survive. */
const SECRETS: readonly [string, string, string][] = [
  ['bearer', `ckr_${HEX48}`, HEX48],
  ['bearer in capitals', `CKR_${HEX48.toUpperCase()}`, HEX48.toUpperCase()],
  ['cookie of a session', `mfs_${HEX48}00112233445566ff`, HEX48],
  ['link', `http://localhost:1/console#link=mfl_${HEX48}00112233445566ff`, HEX48],
  ['key of a page', `mfk_${HEX48}00112233445566ff`, HEX48],
  ['short piece of a bearer', 'ckr_deadbeef', 'deadbeef'],
  ['client secret', `cks_${HEX48}00112233445566ff`, HEX48],
  ['JWT', `eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZyJ9.${KEY_BODY}`, KEY_BODY],
  ['JWE of five parts', `eyJhbGciOiJFQ0RILUVTIn0..aXYxMjM0.${KEY_BODY}.dGFn`, KEY_BODY],
  ['PEM', `-----BEGIN PRIVATE KEY-----\n${KEY_BODY}\n-----END PRIVATE KEY-----\n`, KEY_BODY],
  ['PEM of RSA', `-----BEGIN RSA PRIVATE KEY-----\r\n${KEY_BODY}\r\n-----END RSA PRIVATE KEY-----`, KEY_BODY],
  ['PEM without its end', `-----BEGIN EC PRIVATE KEY-----\n${KEY_BODY}`, KEY_BODY],
  [
    'PGP block',
    `-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n${KEY_BODY}\n=ab12\n-----END PGP PRIVATE KEY BLOCK-----`,
    KEY_BODY,
  ],
  [
    'OpenSSH key',
    `-----BEGIN OPENSSH PRIVATE KEY-----\n${KEY_BODY}\n-----END OPENSSH PRIVATE KEY-----`,
    KEY_BODY,
  ],
  ['JSON with a PEM', JSON.stringify({ pem: `-----BEGIN PRIVATE KEY-----\n${KEY_BODY}` }), KEY_BODY],
  ['URL password', 'postgres://mayfly:Tr0ub4dor@db/x', 'Tr0ub4dor'],
  ['URL password with @', 'postgres://mayfly:Tr0ub4@dor@db/x', 'dor@'],
  ['URL password with / and "', 'postgres://mayfly:Tr0/u"b4dor@db/x', 'b4dor'],
  ['URL password without a user', 'redis://:Tr0ub4dor@db', 'Tr0ub4dor'],
  ['Authorization value', `Bearer ${KEY_BODY}`, KEY_BODY],
  ['Basic value', `authorization: basic ${KEY_BODY}=`, KEY_BODY],
  ['GitHub token', 'ghs_16C7e42F292c6912E7710c838347Ae178B4a', '16C7e42F292c6912'],
  ['master key', `1:${HEX48}0011223344556677`, HEX48],
  ['form body', 'grant_type=client_credentials&client_secret=hunter2hunter2&x=1', 'hunter2'],
]

describe.each(['json', 'pretty'] as const)('no secret survives in %s', (format) => {
  test.each(SECRETS)('%s', (_, secret, part) => {
    const { log, lines, text } = capture({ format })
    log.info({}, `it was ${secret} that came`)
    log.info({ note: secret, list: [secret], deep: { a: { b: { c: secret } } } }, 'nested')
    log.info({ [secret]: 1 }, 'as a name')
    log.error({ err: new Error(secret, { cause: new TypeError('inner', { cause: secret }) }) }, 'error')
    log.error(new AggregateError([new Error(secret)], 'many'), 'bare error')
    log.child({ note: secret }).warn({}, 'child')
    log.info({ map: new Map([['k', secret]]), set: new Set([secret]) }, 'collections')
    log.info({ header: { rawHeaders: ['Authorization', secret] } }, 'raw')
    expect(lines).toHaveLength(8)
    expect(text()).not.toContain(part)
    if (format === 'json') for (const line of lines) expect(() => JSON.parse(line)).not.toThrow()
  })

  test('by the name of the field, at any depth, in any spelling', () => {
    const { log, text } = capture({ format })
    const value = 'plain-words-nobody-recognises'
    const names = 'authorization token access_token refreshToken secret client_secret clientSecret password'
    for (const name of `${names} private_key privateKey PASSWORD x-api-key cookie set-cookie handle`.split(
      ' ',
    )) {
      log.info({ [name]: value }, 'flat')
      log.info({ a: [{ b: { [name]: value } }] }, 'deep')
      log.info({ [name]: { inner: value } }, 'object')
      log.child({ [name]: value }).info({}, 'child')
      log.error({ err: Object.assign(new Error('x'), { config: { [name]: value } }) }, 'property of an error')
    }
    expect(text()).not.toContain(value)
  })

  test('a Secret, wherever it stands', () => {
    const { log, text } = capture({ format })
    const secret = new Secret('plain-words-nobody-recognises')
    log.info({ a: secret, b: [secret], c: { secret } }, `text ${secret} ${inspect({ secret })}`)
    expect(text()).not.toContain('nobody')
    expect(text()).toContain('[redacted]')
  })

  test('writes one line per entry, with any content', () => {
    const { log, lines, text } = capture({ format })
    const hostile = 'a\r\nb\u001b[31mc\u009b31m\u2028d\u202e\u007f\0\t"'
    log.info({ hostile, [hostile]: hostile }, hostile)
    expect(lines).toHaveLength(1)
    expect(text().trimEnd()).toMatch(/^[\x20-\x7e]+$/)
    expect(text().endsWith('\n')).toBe(true)
  })

  test('values that cannot be written do not throw', () => {
    const { log, lines } = capture({ format })
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    const bad = Object.defineProperty({}, 'x', {
      enumerable: true,
      get: () => {
        throw new Error('no')
      },
    })
    let deep: object = {}
    for (let i = 0; i < 10_000; i += 1) deep = { deep }
    const fields = { circle, bad, deep, big: 1n, nan: Number.NaN, fn: () => 1, date: new Date(Number.NaN) }
    log.info({ ...fields, bytes: Buffer.from('ckr'), json: { toJSON: () => circle } }, 'odd')
    expect(lines).toHaveLength(1)
  })
})

test('leaves values that are not secret', () => {
  const { log, lines } = capture()
  const fields = {
    tokens: 3,
    token_type: 'Bearer',
    secret_known: true,
    url: 'https://host:8620/a@b',
    path: '/v1/x',
  }
  log.info({ ...fields, scopes: ['github:o/r:read'], credential_id: 'cred_01', token: null }, 'a message')
  const entry = JSON.parse(lines[0] ?? '')
  expect(entry).toMatchObject({
    level: 'info',
    msg: 'a message',
    tokens: 3,
    token_type: 'Bearer',
    secret_known: true,
  })
  expect(entry).toMatchObject({
    scopes: ['github:o/r:read'],
    credential_id: 'cred_01',
    token: null,
    path: '/v1/x',
  })
  expect(entry.time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
})

test('logs an error in full: type, message, stack, own fields and cause', () => {
  const { log, lines } = capture()
  log.error(
    { err: Object.assign(new Error('outer', { cause: new RangeError('inner') }), { code: 'E1' }) },
    'failed',
  )
  expect(JSON.parse(lines[0] ?? '').err).toMatchObject({
    type: 'Error',
    message: 'outer',
    code: 'E1',
    stack: expect.stringContaining('log.test.ts'),
    cause: { type: 'RangeError', message: 'inner' },
  })
})

test('a field cannot stand in for the level, the time or the message', () => {
  const { log, lines } = capture()
  log.info({ level: 'error', time: 'never', msg: 'forged', __proto__: { x: 1 } }, 'true')
  const [line = ''] = lines
  expect(JSON.parse(line)).toMatchObject({ level: 'info', msg: 'true', level_: 'error', msg_: 'forged' })
  expect(line.match(/"level":/g)).toHaveLength(1)
})

test('printf marks in a message stay as they are', () => {
  const { log, lines } = capture()
  log.info({ a: 1 }, '%s %d %o 100%')
  expect(JSON.parse(lines[0] ?? '').msg).toBe('%s %d %o 100%')
})

test('levels and children', () => {
  const { log, lines } = capture({ level: 'warn' })
  log.debug({}, 'no')
  log.info({}, 'no')
  log.child({ request_id: 'req_1' }).child({ backend: 'db' }).warn({ a: 1 }, 'yes')
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 'warn',
    request_id: 'req_1',
    backend: 'db',
    a: 1,
  })
})

test('the pretty line', () => {
  const { log, text } = capture({ format: 'pretty' })
  log.warn({ backend: 'db', ms: 12, note: 'two words', list: ['a'] }, 'slow "one"')
  expect(text()).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} WARN {2}slow "one" backend=db ms=12 note="two words" list=\["a"\]\n$/,
  )
})

test('colours only on a terminal, and never with NO_COLOR', () => {
  const coloured = capture({ format: 'pretty', isTTY: true })
  coloured.log.info({ a: 1 }, 'x')
  expect(coloured.text()).toContain('\u001b[32m')
  for (const options of [{ isTTY: false }, { isTTY: true, noColor: true }]) {
    const { log, text } = capture({ format: 'pretty', ...options })
    log.info({ a: 1 }, 'x')
    expect(text()).not.toContain('\u001b')
  }
})

test('any JSON goes through as one parsable line', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), (value, message) => {
      const { log, lines } = capture()
      log.info({ value }, message)
      expect(lines).toHaveLength(1)
      expect(JSON.parse(lines[0] ?? '')).toHaveProperty('level', 'info')
    }),
  )
})

test('a hostile text is filtered in bounded time', async () => {
  const { log, lines } = capture()
  const spent = await cpuMsOf(() => {
    for (const piece of [
      '://a:',
      '-----BEGIN PRIVATE KEY-----',
      'eyJ',
      'password=',
      '1:',
      'Bearer ',
      '\\"',
    ]) {
      log.info({ text: piece.repeat(4_000) }, 'x')
    }
  })
  expect(lines).toHaveLength(7)
  expect(spent).toBeLessThan(2_000)
})
