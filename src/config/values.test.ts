import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { faultsOf, type ConfigGiven as Given, loadGiven as load } from '../../test/support/config.ts'
import { ConfigError } from '../domain/fault.ts'
import { FIELDS } from './schema.ts'

describe('secrets', () => {
  const password = 'Tr0ub4dor'
  test('reads the database URL from its file', async () => {
    const files = { '/run/db': `postgres://u:${password}@h/d\n` }
    const { config } = await load({ env: { MAYFLY_DATABASE_URL_FILE: '/run/db' }, files })
    expect(config.databaseUrl?.reveal()).toBe(`postgres://u:${password}@h/d`)
    expect(inspect(config, { depth: null }) + JSON.stringify(config)).not.toContain(password)
  })
  test.each<[string, Given]>([
    ['wrong scheme', { env: { MAYFLY_DATABASE_URL: `mysql://u:${password}@h/d` } }],
    ['no address', { env: { MAYFLY_DATABASE_URL: `u:${password}@h` } }],
    ['not even text', { yaml: `database_url: [${password}]` }],
    ['wrong type of key', { yaml: `database_url: {${password}: 1}` }],
    ['in the arguments', { argv: { databaseUrl: `postgres://u:${password}@h/d` } }],
    ['in the arguments, as a parameter', { argv: { databaseUrl: `postgres://h/d?password=${password}` } }],
    ['in the arguments, broken', { argv: { databaseUrl: `postgres://u:${password}@h:x/d` } }],
    ['wrong in its file', { argv: { databaseUrlFile: 'f' }, files: { f: `http://u:${password}@h` } }],
    [
      'twice',
      {
        env: { MAYFLY_DATABASE_URL: `postgres://u:${password}@h/d`, MAYFLY_DATABASE_URL_FILE: 'f' },
        files: { f: 'x' },
      },
    ],
    ['the master key in the file', { yaml: `master_key: ${password}` }],
    ['the master key as a flag', { argv: { masterKey: password } }],
    ['the master key twice', { env: { MAYFLY_MASTER_KEY: password, MAYFLY_MASTER_KEY_FILE: 'k' } }],
    ['a file that is not YAML', { yaml: `database_url: "postgres://u:${password}@h\nx: [` }],
    ['an escape', { yaml: `database_url: "\\q${password}"` }],
    ['a tag', { yaml: `database_url: !${password} x` }],
    ['an alias', { yaml: `database_url: *${password}` }],
    ['in the issuer', { argv: { issuer: `https://u:${password}@h` } }],
    ['in the issuer, broken', { argv: { issuer: `https://u:${password}@h:x` } }],
  ])('never appear in a message: %s', async (_, given) => {
    const faults = await faultsOf(given)
    expect(faults.length).toBeGreaterThan(0)
    expect(inspect(faults) + String(new ConfigError(faults))).not.toContain(password)
  })
  test.each<[string, string | Uint8Array, RegExp]>([
    ['empty', '', /is empty/],
    ['only a newline', ' \n', /is empty/],
    ['not UTF-8', Uint8Array.of(0xff, 0xfe), /not UTF-8/],
    ['with NUL', 'postgres://h\0', /NUL/],
    ['far too large', 'x'.repeat(70_000), /larger than/],
  ])('refuses a secret file that is %s', async (_, content, message) => {
    const faults = await faultsOf({ argv: { databaseUrlFile: 'f' }, files: { f: content } })
    expect(faults).toEqual([{ source: 'flag --database-url-file', message: expect.stringMatching(message) }])
  })
  test('refuses a missing secret file', async () => {
    const [fault] = await faultsOf({ argv: { databaseUrlFile: '/no' } })
    expect(fault?.message).toBe('database_url_file: the file "/no" does not exist')
  })
  test('accepts a URL without a password as an argument', async () => {
    const { config } = await load({ argv: { databaseUrl: 'postgres:///mayfly?host=/run/postgresql' } })
    expect(config.databaseUrl?.reveal()).toContain('/run/postgresql')
  })
})

describe('invalid values', () => {
  test.each<[string, string[]]>([
    [
      'listen',
      [
        '8620',
        ':8620',
        'localhost',
        'localhost:',
        '::1:80',
        '[::1]',
        '[::1]:x',
        'a b:1',
        '1.2.3:80',
        '1.2.3.256:80',
        '[1.2.3.4]:80',
        'h:65536',
        'h:-1',
        'h:+1',
        'h:1\n',
        '[::1%lo]:1',
        'http://h:1',
        'h:1/x',
        '-h:1',
      ],
    ],
    [
      'issuer',
      [
        'mayfly',
        'http://example.com',
        'http://localhost.example.com',
        'http://127.0.0.1.example.com',
        'https://x/',
        'https://x/?',
        'https://x?a=1',
        'https://x#',
        'https://X.example',
        'https://x:443',
        'https://x/a/../b',
        'https://u@x',
        'ftp://localhost',
        'https://',
        'https://x/a b',
        'javascript:alert(1)',
      ],
    ],
    [
      'trusted_proxies',
      [
        '10.0.0.0/33',
        '10.0.0/8',
        '::/129',
        '0.0.0.0/0',
        '::/0',
        'example.com',
        '10.0.0.0/',
        '10.0.0.0/8/8',
        '10.0.0.0/-1',
        'fe80::1%eth0',
        '',
        '10.0.0.0/8,',
        '10.0.0.0/ 8',
      ],
    ],
    [
      'signing_domain',
      ['a b', 'a@b', 'http://a', '-a.com', 'a..b', '1.2.3.4', 'a>', 'x'.repeat(254), 'a\nb'],
    ],
    ['access_token_ttl', ['0s', '1ms', '1500ms', '25h', 'forever', '3600', '1y', '']],
    ['retention', ['0', 'never', '1h', '0d', 'Forever', '99999999w']],
    ['shutdown_timeout', ['12m', '25d', '0s', 'none']],
    ['upstream_timeout', ['99ms', '6m', '10']],
    ['signing_identity', ['Strict', 'none', 'author']],
    ['signing_key_export', ['no', '1']],
    ['local_admin', ['on', 'AUTO', 'true', 'false']],
    ['log_level', ['verbose', 'INFO', 'trace']],
    ['log_format', ['text']],
    ['access_log', ['yes', '1', 'on', 'TRUE']],
    ['issue_by_get', ['no', '0']],
    ['console', ['true', 'ON', 'yes', '0']],
    ['operator_login', ['true', 'OFF', 'device']],
    ['audiences', ['a b', 'a:b c', 'a,,b', ':x', 'ä']],
    ['master_key_command', ['a "b"', 'a; b', 'a | b', 'a $(b)', 'a `b`', '[]', '[""]', '[1]', ' ']],
    ['limits.issue_rate', ['10', '10/week', '0/hour', '-1/hour']],
    ['limits.max_connections', ['0', '-1', '1.5', 'many', '1e3', '1000001', '0x10', ' 5', '9'.repeat(30)]],
  ])('%s', async (path, values) => {
    const field = FIELDS.find((one) => one.path === path)
    for (const value of values) {
      const faults = await faultsOf({ env: { [field?.env ?? '']: value } })
      expect(
        faults.map(({ source }) => source),
        value,
      ).toEqual([`environment ${field?.env}`])
    }
  })
  test.each(['tls_cert_file', 'tls_key_file'])('refuses %s alone', async (path) => {
    const [fault, ...more] = await faultsOf({ yaml: `${path}: x` })
    expect(fault?.message).toMatch(/requires tls_(cert|key)_file as well/)
    expect(more).toEqual([])
  })
})

test('accepts values at their bounds', async () => {
  for (const listen of [
    '0.0.0.0:0',
    '[::]:65535',
    'localhost:1',
    'my-host.example:80',
    '[::ffff:127.0.0.1]:80',
  ]) {
    await load({ argv: { listen } })
  }
  for (const issuer of [
    'http://localhost',
    'http://127.0.0.2:1',
    'http://[::1]:1',
    'https://x.example/a/b',
    'https://x:8443',
  ]) {
    expect((await load({ argv: { issuer } })).config.issuer).toBe(issuer)
  }
})

test.each([
  '4318',
  'collector:4318',
  'ftp://collector',
  'http://u:Tr0ub4dor@collector:4318',
  'http://collector:4318/?x=Tr0ub4dor',
  'http://collector:4318/#x',
])('takes no receiver of traces at %s, and does not repeat it', async (value) => {
  const [fault] = await faultsOf({ env: { MAYFLY_OTLP_ENDPOINT: value } })
  expect(fault?.message).toContain('http://127.0.0.1:4318')
  expect(fault?.message).not.toContain('Tr0ub4dor')
})
