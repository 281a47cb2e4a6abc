import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { createMasks } from './mask.ts'
import { isText } from './text-types.ts'

const SECRET = 'ghp_Zx8/k+Q"<v&7=é~\'4mT9'
const PLAIN = 'sk-ant-api03-Zq81mNd0Lr5Vt7Yw2'

const maskText = (text: string, secrets = [SECRET, PLAIN], cuts: readonly number[] = []) => {
  const mask = createMasks(secrets).mask()
  const body = mask.open()
  const bytes = Buffer.from(text)
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  const parts = edges.slice(1).map((end, index) => body.write(bytes.subarray(edges[index], end)))
  return { text: Buffer.concat([...parts, body.end()]).toString(), count: mask.count }
}

const FORMS: Record<string, (secret: string) => string> = {
  itself: (secret) => secret,
  encodeURIComponent,
  'encodeURIComponent in lower case': (secret) =>
    encodeURIComponent(secret).replace(/%../g, (one) => one.toLowerCase()),
  encodeURI,
  'a form': (secret) => new URLSearchParams({ a: secret }).toString().slice(2),
  'every byte escaped': (secret) => Buffer.from(secret).toString('hex').replace(/../g, '%$&'),
  'every byte escaped in upper case': (secret) =>
    Buffer.from(secret).toString('hex').toUpperCase().replace(/../g, '%$&'),
  'JSON.stringify': (secret) => JSON.stringify(secret).slice(1, -1),
  'JSON of PHP': (secret) =>
    JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/').replace('é', '\\u00e9'),
  'JSON of Go': (secret) =>
    JSON.stringify(secret)
      .slice(1, -1)
      .replaceAll('<', '\\u003c')
      .replaceAll('&', '\\u0026')
      .replace('é', '\\u00e9'),
  'JSON of nothing but escapes': (secret) =>
    secret
      .split('')
      .map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  HTML: (secret) =>
    secret
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('"', '&quot;')
      .replaceAll("'", '&#39;'),
}

describe.each(Object.entries(FORMS))('a secret as %s', (_name, form) => {
  it.each([SECRET, PLAIN])('is masked by as many bytes: %s', (secret) => {
    const written = form(secret)
    const { text, count } = maskText(`{"token":"${written}"}\n`)
    expect(text).toBe(`{"token":"${'*'.repeat(Buffer.byteLength(written))}"}\n`)
    expect(count).toBe(1)
  })
})

test.each(['', 'x', 'x-', 'x-access-token:', 'ab:', '\u0000'])(
  'masks every character of the base64 pair that holds a bit of the secret, behind %j',
  (user) => {
    for (const encoding of ['base64', 'base64url'] as const) {
      for (const secret of [SECRET, PLAIN, `${PLAIN}a`, `${PLAIN}ab`]) {
        for (const behind of ['', 'y', 'yz', ':more']) {
          const pair = Buffer.from(`${user}${secret}${behind}`).toString(encoding)
          const mask = createMasks([secret]).mask()
          const masked = mask.header(`Basic ${pair}; rest`)
          const first = Math.floor((user.length * 8) / 6)
          const last = Math.ceil(((user.length + Buffer.byteLength(secret)) * 8) / 6)
          const stars = '*'.repeat(last - first)
          expect(masked).toBe(`Basic ${pair.slice(0, first)}${stars}${pair.slice(last)}; rest`)
          expect(mask.count).toBe(1)
        }
      }
    }
  },
)

test('masks a secret in UTF-16, in either byte order', () => {
  for (const swap of [(bytes: Buffer) => bytes, (bytes: Buffer) => bytes.swap16()]) {
    const mask = createMasks([SECRET]).mask()
    const masked = mask.open().write(swap(Buffer.from(`<a>${SECRET}</a>`, 'utf16le')))
    const left = swap(Buffer.from(masked)).toString('utf16le')
    expect(left.slice(0, 3) + left.slice(-4)).toBe('<a></a>')
    expect(mask.count).toBe(1)
    expect([...SECRET].filter((one) => left.slice(3, -4).includes(one))).toEqual([])
  }
})

test('masks headers, and leaves names and other values as they are', () => {
  const mask = createMasks([PLAIN]).mask()
  const raw = [
    'Location',
    `https://a.example/?key=${PLAIN}`,
    'Set-Cookie',
    `a=${PLAIN}; Path=/`,
    'X-Ä',
    'ä\u00ff',
  ]
  const stars = '*'.repeat(PLAIN.length)
  expect(mask.headers(raw)).toEqual([
    'Location',
    `https://a.example/?key=${stars}`,
    'Set-Cookie',
    `a=${stars}; Path=/`,
    'X-Ä',
    'ä\u00ff',
  ])
  expect(mask.count).toBe(2)
})

test('holds nothing back that cannot be the beginning of a secret', () => {
  const body = createMasks([PLAIN]).mask().open()
  const event = Buffer.from('data: {"delta":"task"}\n\n')
  expect(body.write(event)).toEqual(event)
  expect(body.write(Buffer.from('data: sk-a')).toString()).toBe('data: ')
  expect(body.write(Buffer.from('lto\n\n')).toString()).toBe('sk-alto\n\n')
  expect(body.end()).toHaveLength(0)
})

test('never changes a chunk', () => {
  const chunk = Buffer.from(`a ${PLAIN} b`)
  expect(createMasks([PLAIN]).mask().open().write(chunk).toString()).not.toContain(PLAIN)
  expect(chunk.toString()).toBe(`a ${PLAIN} b`)
})

test('masks the beginning of a secret at the end of a body', () => {
  expect(maskText(`a=${PLAIN.slice(0, 20)}`)).toEqual({ text: `a=${'*'.repeat(20)}`, count: 1 })
  expect(maskText('a=sk-ant-')).toEqual({ text: 'a=sk-ant-', count: 0 })
})

test('masks two secrets that touch each other, wherever the chunks end', () => {
  const pair = Buffer.from(`:${PLAIN}`).toString('base64').replace(/=+$/, '')
  for (let cut = 0; cut < pair.length + PLAIN.length; cut += 1) {
    const { text, count } = maskText(`${pair}${PLAIN}${SECRET}`, [SECRET, PLAIN], [cut, cut + 1])
    expect(count).toBe(3)
    expect(text.slice(2)).toBe('*'.repeat(text.length - 2))
  }
})

test('masks as a naive replacement does, however the body is cut', () => {
  const parts = fc.constantFrom(
    ...[
      SECRET,
      PLAIN,
      PLAIN.slice(0, 9),
      SECRET.slice(2),
      encodeURIComponent(SECRET),
      'sk-',
      'g',
      '\n',
      'é',
      ' {"a":',
    ],
    ...[JSON.stringify(SECRET), PLAIN.slice(1), `${PLAIN}${PLAIN}`],
  )
  const naive = (text: string) => {
    let rest = text
    for (const form of [encodeURIComponent(SECRET), JSON.stringify(SECRET).slice(1, -1), SECRET, PLAIN]) {
      rest = rest.replaceAll(form, '*'.repeat(Buffer.byteLength(form)))
    }
    return rest
  }
  fc.assert(
    fc.property(
      fc.array(parts, { maxLength: 12 }),
      fc.array(fc.nat(2000), { maxLength: 20 }),
      (pieces, cuts) => {
        const text = `${pieces.join('')}.`
        const masked = maskText(text, [SECRET, PLAIN], cuts).text
        expect(masked).toBe(naive(text))
      },
    ),
    { numRuns: 2_000 },
  )
})

test('counts a secret once that comes in two pieces', () => {
  const mask = createMasks([PLAIN]).mask()
  const body = mask.open()
  const pieces = [`one ${PLAIN.slice(0, 11)}`, `${PLAIN.slice(11)} two`]
  const parts = [...pieces.map((piece) => body.write(Buffer.from(piece))), body.end()]
  expect(Buffer.concat(parts).toString()).toBe(`one ${'*'.repeat(PLAIN.length)} two`)
  expect(mask.count).toBe(1)
})

test('what is held back goes on when asked, and the rest of a secret is masked all the same', () => {
  const body = createMasks([PLAIN]).mask().open()
  const texts = (...parts: Buffer[]) => parts.map(String)
  expect(texts(body.write(Buffer.from('task')), body.release(), body.release())).toEqual(['ta', 'sk', ''])
  expect(texts(body.write(Buffer.from(' done, s')), body.release())).toEqual([' done, ', 's'])
  expect(texts(body.write(Buffer.from(`${PLAIN.slice(1)}!`)))).toEqual([`${'*'.repeat(PLAIN.length - 1)}!`])
  // So much of it is no accident.
  expect(texts(body.write(Buffer.from(PLAIN.slice(0, 12))), body.release())).toEqual(['', ''])
  expect(texts(body.write(Buffer.from(`${PLAIN.slice(12)}s`)), body.release())).toEqual([
    ...['*'.repeat(PLAIN.length), 's'],
  ])
  expect(String(body.end())).toBe('')
})

test('finds nothing where there are no secrets, or very short ones', () => {
  expect(maskText('any text', [])).toEqual({ text: 'any text', count: 0 })
  expect(maskText('a token', ['a', 'tok', ''])).toEqual({ text: 'a token', count: 0 })
})

test('tells types of text from others', () => {
  const text = [
    ...[
      'text/html; charset=utf-8',
      'TEXT/EVENT-STREAM',
      'application/json',
      'application/problem+json',
      undefined,
      '',
    ],
    ...[
      'image/svg+xml',
      'application/x-ndjson',
      'application/x-amz-json-1.1',
      'application/openmetrics-text; version=1.0.0',
      'application/vnd.elasticsearch+x-ndjson',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'nonsense',
      'a/b/c',
      ' text/plain',
    ],
  ]
  const others = [
    'application/octet-stream',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    'image/png',
    'application/x-git-upload-pack-result',
    'application/grpc',
    'application/grpc-web-text',
  ]
  expect(text.filter((type) => !isText(type))).toEqual([])
  expect(others.filter(isText)).toEqual([])
})
