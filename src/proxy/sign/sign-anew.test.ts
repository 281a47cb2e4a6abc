import { createHash } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Header } from '../rules/asked.ts'
import type { Live } from '../types.ts'
import { readSigned, type SignedRequest } from './read-signed.ts'
import { type SignedAnew, type SigV4Place, signAnew } from './sign-anew.ts'

// Of the examples in the S3 API Reference and in the IAM User Guide.
const KEY_ID = 'AKIAIOSFODNN7EXAMPLE'
const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
const EMPTY = createHash('sha256').digest('hex')
const HELD_ID = 'ASIAMAYFLYPLACEHOLD1'
const HELD_TOKEN = 'FwoGZXIvYXdzEPlaceholder'
const NONE = '0'.repeat(64)

const place: SigV4Place = {
  ...{ in: 'sigv4', field: 'secret_access_key', keyId: 'access_key_id', token: 'session_token' },
  deny: [],
}
const placeholders = new Map([
  ['access_key_id', HELD_ID],
  ['secret_access_key', 'placeholder'],
  ['session_token', HELD_TOKEN],
])

function live(token?: string, secret = SECRET, keyId = KEY_ID): Live {
  const secrets = new Map([
    ['access_key_id', keyId],
    ['secret_access_key', secret],
    ...(token === undefined ? [] : [['session_token', token] as const]),
  ])
  return { state: 'live', credentialId: 'cred_x', secrets, open: new Map(), expiresAt: 0 }
}

function authorization(scope: string, signed: string): Header {
  const credential = `${HELD_ID}/${scope}/aws4_request`
  return [
    'Authorization',
    `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signed}, Signature=${NONE}`,
  ]
}

type Options = { readonly of?: Live; readonly host?: string; readonly bodyHash?: string }

function sign(request: SignedRequest, { of = live(), host = 'example.com', bodyHash }: Options = {}) {
  const signed = readSigned(request)
  if ('kind' in signed) return signed
  return signAnew({ request, signed, place, live: of, placeholders, host, bodyHash })
}

function signatureIn(made: ReturnType<typeof sign>): string | undefined {
  if (made.kind === 'refuse') return made.reason
  const texts = [made.target, ...made.headers.map(([, value]) => value)]
  return texts.map((text) => /Signature=([0-9a-f]{64})/.exec(text)?.[1]).find(Boolean)
}

it('takes no longer over a value that is nothing but spaces', () => {
  const timeOf = (value: string) => {
    const before = performance.now()
    const made = sign({
      ...{ method: 'GET', target: '/' },
      headers: [
        authorization('20150830/us-east-1/service', 'host;x-amz-date;x-long'),
        ['X-Amz-Date', '20150830T123600Z'],
        ['X-Amz-Content-Sha256', EMPTY],
        ['X-Long', value],
      ],
    })
    expect(made.kind).toBe('signed')
    return performance.now() - before
  }
  const length = 60_000
  timeOf('x')
  // As many words, each of which must be looked at, are the measure.
  const words = timeOf(`a${' b'.repeat(length / 2)}`)
  expect(timeOf(`a${' '.repeat(length)}b`)).toBeLessThan(100 * words + 100)
})

describe('documented examples', () => {
  const host = 'examplebucket.s3.amazonaws.com'
  const s3 = (method: string, target: string, hash: string, more: Header[], names: string) =>
    signatureIn(
      sign(
        {
          ...{ method, target },
          headers: [
            ['Host', '127.0.0.1:4000'],
            ...more,
            ['x-amz-content-sha256', hash],
            ['x-amz-date', '20130524T000000Z'],
            authorization('20130524/us-east-1/s3', names),
          ],
        },
        { host },
      ),
    )

  it('signs a GET of S3 with a range', () => {
    const names = 'host;range;x-amz-content-sha256;x-amz-date'
    expect(s3('GET', '/test.txt', EMPTY, [['Range', 'bytes=0-9']], names)).toBe(
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    )
  })

  it('signs a PUT of S3 whose key needs an escape', () => {
    const names = 'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class'
    const more: Header[] = [
      ['Date', 'Fri, 24 May 2013 00:00:00 GMT'],
      ['x-amz-storage-class', 'REDUCED_REDUNDANCY'],
    ]
    const hash = createHash('sha256').update('Welcome to Amazon S3.').digest('hex')
    const wanted = '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd'
    expect(s3('PUT', '/test%24file.text', hash, more, names)).toBe(wanted)
    expect(s3('PUT', '/test$file.text', hash, more, names)).toBe(wanted)
  })

  it.each([
    ['/?lifecycle', 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'],
    ['/?max-keys=2&prefix=J', '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
    ['/?prefix=J&max-keys=2', '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
  ])('signs the query of %s', (target, wanted) => {
    expect(s3('GET', target, EMPTY, [], 'host;x-amz-content-sha256;x-amz-date')).toBe(wanted)
  })

  it('signs a URL anew', () => {
    const query = [
      'X-Amz-Algorithm=AWS4-HMAC-SHA256',
      `X-Amz-Credential=${HELD_ID}%2F20130524%2Fus-east-1%2Fs3%2Faws4_request`,
      'X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host',
      `X-Amz-Signature=${NONE}`,
    ]
    const made = sign(
      { method: 'GET', target: `/test.txt?${query.join('&')}`, headers: [['Host', 'x']] },
      { host },
    )
    expect(signatureIn(made)).toBe('aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404')
    expect((made as SignedAnew).target).toBe(
      `/test.txt?${query
        .join('&')
        .replace(HELD_ID, KEY_ID)
        .replace(NONE, signatureIn(made) ?? '')}`,
    )
  })

  it('signs a request of another service, whose path is normalised and encoded twice', () => {
    const of = live(undefined, 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', 'AKIDEXAMPLE')
    const at = (target: string) =>
      signatureIn(
        sign(
          {
            ...{ method: 'GET', target },
            headers: [
              ['X-Amz-Date', '20150830T123600Z'],
              ['Host', 'x'],
              authorization('20150830/us-east-1/service', 'host;x-amz-date'),
            ],
          },
          { of, host: 'example.amazonaws.com', bodyHash: EMPTY },
        ),
      )
    // "get-vanilla" of the signing test suite.
    expect(at('/')).toBe('5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31')
    expect(at('//')).toBe(at('/'))
    expect(at('/./')).toBe(at('/'))
    expect(at('/a/../')).toBe(at('/'))
  })
})

describe('beside another implementation', () => {
  const text = fc
    .string({ unit: 'binary', minLength: 1, maxLength: 6 })
    .filter((one) => one !== '.' && one !== '..')
  const request = fc.record({
    service: fc.constantFrom('s3', 'dynamodb', 'lambda'),
    method: fc.constantFrom('GET', 'POST', 'PUT'),
    path: fc.array(text, { maxLength: 4 }),
    query: fc.uniqueArray(fc.tuple(text, text), { maxLength: 4, selector: ([name]) => name }),
    body: fc.string({ maxLength: 20 }),
    hasToken: fc.boolean(),
    signQuery: fc.boolean(),
  })
  const datetime = '20261127T101500Z'

  it('signs every request as its client would have with the real key', async () => {
    await fc.assert(
      fc.asyncProperty(request, async ({ path, query, hasToken, body, ...rest }) => {
        const { method } = rest
        const search = query.map((pair) => pair.map(encodeURIComponent).join('=')).join('&')
        const url = `https://api.example.com/${path.map(encodeURIComponent).join('/')}?${search}`
        const by = async (accessKeyId: string, secretAccessKey: string, sessionToken?: string) => {
          const token = sessionToken === undefined ? {} : { sessionToken }
          const given = method === 'GET' ? {} : { body, headers: { 'content-type': 'text/plain' } }
          const keys = { accessKeyId, secretAccessKey, ...token }
          const signer = new AwsV4Signer({ ...rest, ...keys, ...given, url, datetime, region: 'eu-west-1' })
          const signed = await signer.sign()
          return { target: signed.url.pathname + signed.url.search, headers: [...signed.headers] as Header[] }
        }
        const real = await by(KEY_ID, SECRET, hasToken ? 'real/token+==' : undefined)
        const sent = await by(HELD_ID, 'placeholder', hasToken ? HELD_TOKEN : undefined)
        const made = sign(
          { method, ...sent },
          {
            of: live(hasToken ? 'real/token+==' : undefined),
            host: 'api.example.com',
            bodyHash: createHash('sha256')
              .update(method === 'GET' ? '' : body)
              .digest('hex'),
          },
        )
        expect(signatureIn(made)).toBe(signatureIn({ kind: 'signed', ...real }))
        expect(JSON.stringify(made)).not.toMatch(/placeholder/i)
      }),
      { numRuns: 150 },
    )
  })
})

describe('what is replaced', () => {
  const base: Header[] = [
    ['Host', '127.0.0.1:4000'],
    ['x-amz-date', '20130524T000000Z'],
    ['x-amz-content-sha256', 'UNSIGNED-PAYLOAD'],
    authorization('20130524/us-east-1/s3', 'host;x-amz-date'),
  ]
  const get = (headers: Header[], of = live('real-token')) =>
    sign({ method: 'GET', target: '/b/k', headers }, { of })
  const valueIn = (made: ReturnType<typeof sign>, name: string) =>
    made.kind === 'refuse'
      ? made.reason
      : made.headers.filter(([one]) => one.toLowerCase() === name).map(([, v]) => v)

  it('adds the session token and signs it, also where the client sent none', () => {
    for (const headers of [base, [...base, ['X-Amz-Security-Token', HELD_TOKEN] as const]]) {
      const made = get(headers)
      expect(valueIn(made, 'x-amz-security-token')).toEqual(['real-token'])
      expect(valueIn(made, 'authorization')).toEqual([
        expect.stringContaining('SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,'),
      ])
    }
  })

  it('removes the placeholder of a session token where the key has none', () => {
    const made = get([...base, ['X-Amz-Security-Token', HELD_TOKEN]], live())
    expect(valueIn(made, 'x-amz-security-token')).toEqual([])
  })

  it.each([
    ['a session token that is not the placeholder', [...base, ['X-Amz-Security-Token', 'mine']]],
    [
      'two session tokens',
      [...base, ['X-Amz-Security-Token', HELD_TOKEN], ['x-amz-security-token', HELD_TOKEN]],
    ],
    ['another key', base.map(([name, value]) => [name, value.replace(HELD_ID, 'AKIAOTHER')])],
  ] as [string, Header[]][])('refuses %s', (_, headers) => {
    expect(get(headers)).toEqual({ kind: 'refuse', reason: 'bad_signature' })
  })

  it('signs what is sent: the host of the upstream, and no header of the connection', () => {
    const names = 'connection;host;range;user-agent;x-amz-date'
    const made = get([
      ...base.slice(0, 3),
      ['User-Agent', 'x'],
      authorization('20130524/us-east-1/s3', names),
    ])
    expect(valueIn(made, 'host')).toEqual(['example.com'])
    expect(valueIn(made, 'authorization')[0]).toMatch(/=host;user-agent;x-amz-content-sha256;x-amz-date;/)
  })

  it('keeps the path as it was sent', () => {
    const target = '/b/a%2fb//c%20d/?x=%7e'
    const made = sign({ method: 'GET', target, headers: base })
    expect(made).toMatchObject({ kind: 'signed', target })
  })

  it('takes a secret that no header can hold for none', () => {
    for (const bad of ['a\nb', 'a b', ''])
      expect(get(base, live(bad))).toEqual({ kind: 'refuse', reason: 'unfit_secret' })
  })

  it('needs the hash of a body that the client hashed but did not state', () => {
    const headers = base.filter(([name]) => name !== 'x-amz-content-sha256')
    expect(get(headers)).toEqual({ kind: 'refuse', reason: 'bad_signature' })
  })
})

describe('the form of a signature', () => {
  const date: Header = ['X-Amz-Date', '20130524T000000Z']
  const good = authorization('20130524/us-east-1/s3', 'host;x-amz-date')
  const value = good[1]
  const read = (headers: Header[], target = '/') => readSigned({ method: 'GET', target, headers })
  const refused = { kind: 'refuse', reason: 'bad_signature' }

  it('reads it in each spelling that clients use', () => {
    const wanted = { form: 'header', keyId: HELD_ID, region: 'us-east-1', service: 's3' }
    expect(read([date, good])).toMatchObject(wanted)
    expect(read([date, ['authorization', value.replaceAll(', ', ',')]])).toMatchObject(wanted)
    const [credential, signed, signature] = value.slice('AWS4-HMAC-SHA256 '.length).split(', ')
    expect(
      read([date, ['authorization', `AWS4-HMAC-SHA256 ${signature}, ${signed}, ${credential}`]]),
    ).toMatchObject(wanted)
    expect(read([['Date', 'Fri, 24 May 2013 00:00:00 GMT'], good])).toMatchObject({
      time: '20130524T000000Z',
    })
  })

  const with_ = (from: string, to: string): Header[] => [date, ['Authorization', value.replace(from, to)]]
  it.each<[string, Header[]]>([
    ['no signature', [date]],
    ['two of them', [date, good, good]],
    ['version 2', [date, ['Authorization', 'AWS AKIA:c2ln']]],
    ['version 4A', with_('AWS4-HMAC-SHA256', 'AWS4-ECDSA-P256-SHA256')],
    ['another scope', with_('aws4_request', 'aws5_request')],
    ['a scope with too many parts', with_('/s3/', '/s3/s3/')],
    ['a scope of another day', with_('20130524', '20130525')],
    ['an empty region', with_('us-east-1', '')],
    ['a service with a dot', with_('/s3/', '/evil.example/')],
    ['a service with an escape', with_('/s3/', '/s3%2f/')],
    ['a signature that is none', with_(NONE, 'x')],
    ['a signature in capitals', with_(NONE, 'A'.repeat(64))],
    ['no host among the signed', with_('host;', '')],
    ['a name twice', with_('host;', 'host;host;')],
    ['a name in capitals', with_('host;', 'Host;')],
    ['a fourth part', with_('Signature=', 'Signature=x, Signature=')],
    ['an unknown part', with_('Credential=', 'Other=x, Credential=')],
    ['two dates', [date, date, good]],
    ['a date in another form', [['X-Amz-Date', '2013-05-24T00:00:00Z'], good]],
    ['two hashes', [date, good, ['x-amz-content-sha256', NONE], ['x-amz-content-sha256', NONE]]],
    ['a hash of no kind', [date, good, ['x-amz-content-sha256', 'abc']]],
    ['events', [date, good, ['x-amz-content-sha256', 'STREAMING-AWS4-HMAC-SHA256-EVENTS']]],
    [
      'chunks of version 4A',
      [date, good, ['x-amz-content-sha256', 'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD']],
    ],
  ])('refuses %s', (_, headers) => {
    expect(read(headers)).toEqual(refused)
  })

  const query = [
    ['X-Amz-Algorithm', 'AWS4-HMAC-SHA256'],
    ['X-Amz-Credential', `${HELD_ID}%2F20130524%2Fus-east-1%2Fs3%2Faws4_request`],
    ['X-Amz-Date', '20130524T000000Z'],
    ['X-Amz-Expires', '60'],
    ['X-Amz-SignedHeaders', 'host'],
    ['X-Amz-Signature', NONE],
  ].map((pair) => pair.join('='))
  const url = (...more: string[]) => `/k?${[...query, ...more].join('&')}`
  const changed = (from: string, to: string) => url().replace(from, to)

  it('reads that of a URL', () => {
    expect(read([], url('x=1'))).toMatchObject({ form: 'query', payload: { hash: 'UNSIGNED-PAYLOAD' } })
    expect(read([], changed('%2Fs3%2F', '%2Fsqs%2F'))).toMatchObject({ payload: { kind: 'hashed' } })
  })

  it.each([
    ['one beside a header', url(), [date, good]],
    ['a parameter twice', url('X-Amz-Date=20130524T000000Z'), []],
    ['a parameter twice, escaped', url('X-Amz%2DDate=20130524T000000Z'), []],
    ['a parameter in small letters', url().replace('X-Amz-Expires', 'x-amz-expires'), []],
    ['one that is valid for too long', changed('=60', '=604801'), []],
    ['one that is valid for no time', changed('=60', '=0'), []],
    ['version 4A', changed('AWS4-HMAC-SHA256', 'AWS4-ECDSA-P256-SHA256'), []],
    ['one without a name', changed('X-Amz-SignedHeaders=host&', ''), []],
    ['chunks', url('X-Amz-Content-Sha256=STREAMING-AWS4-HMAC-SHA256-PAYLOAD'), []],
  ] as [string, string, Header[]][])('refuses in a URL %s', (_, target, headers) => {
    expect(read(headers, target)).toEqual(refused)
  })
})
