import { describe, expect, test } from 'vitest'
import { mergeUses } from './merge-uses.ts'
import { readUseRules, type SentUse, type SentUseRules } from './read-use-rules.ts'
import type { HttpUse, Use, UseRules } from './use.ts'

const USE: SentUse = {
  protocol: 'http',
  name: 'api',
  origin: 'https://api.example.com',
  places: [{ in: 'header', name: 'Authorization' }],
  allow: [{ methods: ['GET'], path: '/v1/**' }],
}
const rule = { methods: ['GET'], path: '/x' }

describe('rules of use', () => {
  test('are read into the form in which they are kept', () => {
    const signed: SentUse = {
      ...USE,
      name: 's3',
      origin: 'https://*.amazonaws.com',
      local: false,
      places: [
        { in: 'sigv4', field: 'secret', key_id: 'id', token: 'session', allow: ['s3'], deny: ['sts'] },
      ],
      deny: [{ methods: ['*'], path: '/' }],
    }
    const body: SentUse = {
      ...USE,
      name: 'form',
      places: [{ in: 'body', name: 'client_secret', max_bytes: 10 }],
    }
    expect(
      readUseRules({
        uses: [USE, signed, body],
        allow: [{ ...rule, path: '/@acme%2F*', use: 'api', slashes: true, caseless: true }],
        services: ['iam'],
      }),
    ).toEqual({
      uses: [
        { ...USE, local: false, places: [{ in: 'header', name: 'authorization' }], deny: [] },
        {
          ...signed,
          places: [
            { in: 'sigv4', field: 'secret', keyId: 'id', token: 'session', allow: ['s3'], deny: ['sts'] },
          ],
        },
        { ...body, local: false, places: [{ in: 'body', name: 'client_secret', maxBytes: 10 }], deny: [] },
      ],
      allow: [{ ...rule, path: '/@acme%2F*', use: 'api', slashes: true, caseless: true }],
      services: ['iam'],
    })
    expect(readUseRules({})).toEqual({})
  })

  test.each([
    'http://127.0.0.1:8080',
    'http://[::1]:8080',
    'https://api.example.com:8443',
    'https://localhost',
  ])('take the origin %s of a local use', (origin) => {
    expect(readUseRules({ uses: [{ ...USE, origin, local: true }] }).uses?.[0]?.origin).toBe(origin)
  })

  const origins = [
    'http://api.example.com',
    'https://api.example.com/',
    'https://api.example.com/v1',
    'https://API.example.com',
    'https://api.example.com:443',
    'https://api.example.com:0',
    'https://api.example.com:99999',
    'https://user@api.example.com',
    'https://user:pw@api.example.com',
    'https://api.example.com?x',
    'https://api.example.com#x',
    'https://api.example.com.',
    'https://*.example.com',
    'https://api.*.com',
    'https://0x7f.1',
    'https://127.1',
    'https://exa mple.com',
    'https://bücher.example',
    'https://a..b',
    'https://-a.example',
    'ftp://api.example.com',
    'https:api.example.com',
    'https://',
    'https://api.example.com\n',
    'javascript:alert(1)',
    '',
  ]
  test.each(origins)('refuse the origin %j', (origin) => {
    expect(() => readUseRules({ uses: [{ ...USE, origin }] })).toThrow('"uses.uses[0].origin"')
  })

  test.each(['https://*.com', 'https://*', 'https://*.*.example.com', 'https://x*.example.com'])(
    'refuse the origin %j also of a use that is signed',
    (origin) => {
      const places = [{ in: 'sigv4', key_id: 'id', deny: [] } as const]
      expect(() => readUseRules({ uses: [{ ...USE, origin, places }] })).toThrow('origin')
    },
  )

  test.each(['/', '/a', '/a/*', '/a/*b*/c', '/a/**', '/**', '/a/', '/bücher', '/a b', '/a:b@c'])(
    'take the pattern %s',
    (path) => {
      expect(readUseRules({ deny: [{ methods: ['*'], path }] }).deny?.[0]?.path).toBe(path)
    },
  )
  const patterns = [
    '',
    'a',
    '/a/../b',
    '/.',
    '/./a',
    '/a//b',
    '//',
    '/%2e%2e',
    '/a%2Fb',
    '/a?b',
    '/a#b',
    '/a\\b',
  ]
  test.each([...patterns, '/a\nb', '/a\u0000', '/a\u202e', '/a\u2028', '/**/a', '/a**', '/***', '/\ud800'])(
    'refuse the pattern %j',
    (path) => {
      expect(() => readUseRules({ deny: [{ methods: ['*'], path }] })).toThrow('"uses.deny[0].path"')
    },
  )

  test.each([['get'], ['GET', '*'], ['GET '], ['G\nET'], [''], ['TRACE'], []])(
    'refuse the methods %j',
    (...methods) => {
      expect(() => readUseRules({ allow: [{ ...rule, methods }] })).toThrow('"uses.allow[0].methods"')
    },
  )

  const places: SentUse['places'] = [
    { in: 'header', name: 'Host' },
    { in: 'header', name: 'content-length' },
    { in: 'header', name: 'Transfer-Encoding' },
    { in: 'header', name: 'x y' },
    { in: 'header', name: ':authority' },
    { in: 'header', name: 'x\r\ny' },
    { in: 'query', name: 'a b' },
    { in: 'query', name: 'ü' },
    { in: 'body', name: '\n', max_bytes: 1 },
    { in: 'basic', field: 'a b' },
    { in: 'path', field: '__proto__ ' },
    { in: 'sigv4', key_id: '', deny: [] },
    { in: 'sigv4', key_id: 'id', token: ' ', deny: [] },
    { in: 'sigv4', key_id: 'id', deny: ['S3'] },
    { in: 'sigv4', key_id: 'id', allow: ['s3/../sts'], deny: [] },
    { in: 'sigv4', key_id: 'id', deny: Array.from({ length: 65 }, (_, one) => `s${one}`) },
    { in: 'body', name: 'a', max_bytes: 1_048_577 },
  ]
  test.each(places)('refuse the place %j', (place) => {
    expect(() => readUseRules({ uses: [{ ...USE, places: [place] }] })).toThrow('"uses.uses[0].places[0]')
  })

  const others: SentUseRules[] = [
    { uses: [USE, USE] },
    { uses: [{ ...USE, name: 'a b' }] },
    { uses: [{ ...USE, name: '' }] },
    { allow: [{ ...rule, use: '*' }] },
    { services: ['*'] },
    { services: [''] },
    { services: ['s3', 's3-'] },
    {
      uses: [
        {
          ...USE,
          origin: 'https://*.amazonaws.com',
          local: true,
          places: [{ in: 'sigv4', key_id: 'id', deny: [] }],
        },
      ],
    },
  ]
  test.each(others)('refuse %j', (rules) => {
    expect(() => readUseRules(rules)).toThrow('uses')
  })
})

describe('merged uses', () => {
  const ofKind: HttpUse = {
    protocol: 'http',
    name: 'api',
    origin: 'https://api.example.com',
    local: false,
    places: [{ in: 'header', name: 'authorization' }],
    allow: [{ methods: ['GET'], path: '/**' }],
    deny: [{ methods: ['*'], path: '/keys/**' }],
  }
  const aws: HttpUse = {
    ...ofKind,
    name: 'aws',
    places: [{ in: 'sigv4', field: 'secret', keyId: 'id', deny: ['sts', 'iam'] }],
  }
  const database: Use = {
    protocol: 'postgres',
    name: 'sql',
    host: 'db',
    port: 5432,
    local: false,
    tls: 'require',
  }
  const merged = (rules: UseRules | null) => mergeUses([ofKind, aws, database], rules)

  test('are those of the kind where nothing is named', () => {
    expect(merged(null)).toEqual([ofKind, aws, database])
    expect(merged({})).toEqual([ofKind, aws, database])
  })

  test('have the named rules first, marked, for the use they name or for all', () => {
    const flags = { slashes: true, caseless: true }
    const allow = { methods: ['POST'], path: '/keys/a', ...flags, use: 'api' }
    const deny = { methods: ['DELETE'], path: '/**' }
    const [api, other, sql] = merged({ allow: [allow], deny: [deny] })
    expect(api).toEqual({
      ...ofKind,
      allow: [{ methods: ['POST'], path: '/keys/a', ...flags, named: true }, ...ofKind.allow],
      deny: [{ ...deny, named: true }, ...ofKind.deny],
    })
    expect(other).toEqual({ ...aws, deny: [{ ...deny, named: true }, ...aws.deny] })
    expect(sql).toEqual(database)
  })

  test('have a use of the administrator in place of that of the kind, or beside it', () => {
    const own = { ...ofKind, origin: 'https://other.example' }
    const marked = {
      ...own,
      allow: own.allow.map((one) => ({ ...one, named: true })),
      deny: own.deny.map((one) => ({ ...one, named: true })),
    }
    expect(merged({ uses: [own] })).toEqual([aws, database, marked])
    expect(merged({ uses: [{ ...own, name: 'more' }] })).toEqual([
      ofKind,
      aws,
      database,
      { ...marked, name: 'more' },
    ])
  })

  test('permit named services, also beyond a closed list', () => {
    const place = { in: 'sigv4', field: 'secret', keyId: 'id' } as const
    const closed: HttpUse = { ...aws, places: [{ ...place, allow: ['s3'], deny: [] }] }
    const [open, of] = mergeUses([aws, closed], { services: ['iam'] }) as HttpUse[]
    expect(open?.places).toEqual([{ ...place, deny: ['sts'] }])
    expect(of?.places).toEqual([{ ...place, allow: ['s3', 'iam'], deny: [] }])
  })
})
