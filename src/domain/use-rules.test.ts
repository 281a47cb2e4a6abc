import { expect, test } from 'vitest'
import type { HttpUse, Place } from './use.ts'
import { useFault } from './use-rules.ts'

const use = (over: Partial<HttpUse> = {}): HttpUse => ({
  protocol: 'http',
  name: 'api',
  origin: 'https://api.example.com',
  local: false,
  places: [{ in: 'header', name: 'authorization' }],
  allow: [{ methods: ['GET', 'POST'], path: '/v1/**' }],
  deny: [{ methods: ['*'], path: '/v1/keys/*' }],
  ...over,
})

test('accepts what kinds and administrators write', () => {
  const paths = ['/', '/**', '/v1', '/v1/', '/v1/*', '/bot*/send*', '/a b/ä', '/100%/x', '/*.git/info/refs']
  const good: Partial<HttpUse>[] = [
    {},
    ...paths.map((path) => ({ allow: [{ methods: ['GET'], path }] })),
    { allow: [{ methods: ['*'], path: '/@acme%2F*', slashes: true }] },
    { origin: 'https://[::1]:8443', local: true },
    { origin: 'http://localhost:8200', local: true },
    { origin: 'https://münchen.example' },
    {
      origin: 'https://*.amazonaws.com',
      places: [{ in: 'sigv4', keyId: 'id', deny: ['sts', 'execute-api'] }],
    },
    { places: [{ in: 'body', name: 'client_secret', maxBytes: 65_536 }, { in: 'basic' }, { in: 'path' }] },
  ]
  expect(good.map((over) => useFault(use(over))).filter((fault) => fault !== undefined)).toEqual([])
})

const HOSTILE_PATHS = [
  ...[
    '',
    'v1',
    'https://api.example.com/v1',
    '*',
    '**',
    '/a//b',
    '//',
    '/a//**',
    '/**/a',
    '/a**',
    '/***',
    '/a/**/b',
  ],
  ...[
    '/a/../b',
    '/..',
    '/.',
    '/./a',
    '/%2e%2e/a',
    '/a%2Fb',
    '/%00',
    '/a\\b',
    '/a?b=1',
    '/a#b',
    '/a\nb',
    '/a\u0000',
  ],
  ...['/\ud800', '/a\u0085', '/\u2028', `/${'a'.repeat(512)}`, `/${'a/'.repeat(80)}`, '/*a*a*a*a*'],
]
test.each(HOSTILE_PATHS)('refuses the pattern %j', (path) => {
  const fault = useFault(
    use({
      allow: [
        { methods: ['GET'], path: '/ok' },
        { methods: ['GET'], path },
      ],
    }),
  )
  expect(fault).toMatch(/^allow\[1\]\.path (?:must|may) /)
})

test('refuses escapes in patterns, other than a slash where slashes are permitted', () => {
  const rule = (path: string) => useFault(use({ deny: [{ methods: ['*'], path, slashes: true }] }))
  expect(rule('/a%2fb')).toBeUndefined()
  for (const path of ['/a%2e%2fb', '/%2e', '/a%2f..%2fb', '/a%252Fb', '/%5c']) {
    expect(rule(path), path).toMatch(/^deny\[0\]\.path /)
  }
})

test.each([[[]], [['get']], [['*', 'GET']], [['CONNECT']], [['TRACE']], [['GET ']], [['']], [['G ET']]])(
  'refuses the methods %j',
  (methods) => {
    expect(useFault(use({ allow: [{ methods, path: '/' }] }))).toMatch(/^allow\[0\]\.methods /)
  },
)

const HOSTILE_ORIGINS = [
  ...['', 'api.example.com', 'ftp://a.example', 'https://', 'https://a.example/', 'https://a.example/path'],
  ...[
    'https://user@a.example',
    'https://a.example?x',
    'https://a.example#x',
    'https://a.example:0',
    'HTTPS://a.example',
  ],
  ...[
    'https://a.example:99999',
    'https://a.example:',
    'https://a..example',
    'https://%61.example',
    'https://a b.example',
  ],
  ...[
    'https://*',
    'https://*.com',
    'https://*.example.com',
    'https://a.*.com',
    'https://*.127.0.0.1',
    'http://a.example',
  ],
  ...['https://[::1', 'https://[::1%25lo]', 'https://a\\b', 'https://a.example\n'],
]
test.each(HOSTILE_ORIGINS)('refuses the origin %j', (origin) => {
  expect(useFault(use({ origin }))).toMatch(/^\.origin /)
})

test('refuses a host with a star for anything but signatures, and for a local use', () => {
  const sigv4: Place = { in: 'sigv4', keyId: 'id', deny: [] }
  const origin = 'https://*.amazonaws.com'
  expect(useFault(use({ origin, places: [] }))).toMatch(/^\.origin /)
  expect(useFault(use({ origin, places: [sigv4, { in: 'basic' }] }))).toMatch(/^\.origin /)
  expect(useFault(use({ origin, places: [sigv4], local: true }))).toMatch(/^\.origin /)
})

const HOSTILE_PLACES: Place[] = [
  ...[
    '',
    'a b',
    'a:b',
    'a\r\nb',
    'Host',
    'connection',
    'Proxy-Authorization',
    'X-Mayfly-Run',
    'X-Forwarded-Host',
  ].map((name) => ({ in: 'header', name }) as const),
  { in: 'query', name: '' },
  { in: 'body', name: '', maxBytes: 1 },
  ...[0, -1, 1.5, Number.NaN, 1e9].map((maxBytes) => ({ in: 'body', name: 'a', maxBytes }) as const),
  { in: 'sigv4', keyId: '', deny: [] },
  { in: 'sigv4', keyId: 'id', deny: ['S3'] },
  { in: 'sigv4', keyId: 'id', allow: ['s3/*'], deny: [] },
  { in: 'sigv4', keyId: 'id', allow: ['s3', '*'], deny: [] },
]
test.each(HOSTILE_PLACES)('refuses the place %j', (place) => {
  expect(useFault(use({ places: [place] }))).toMatch(/^places\[0\]/)
})
