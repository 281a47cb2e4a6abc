import { expect, test } from 'vitest'
import { consoleFilesOf, formFor } from './files.ts'

const bytes = (text: string) => Buffer.from(text)
const built = new Map([
  ['.built', bytes('')],
  ['index.html', bytes('<!doctype html><html><head><title>x</title></head></html>')],
  ['assets/index-1a.js', bytes('plain')],
  ['assets/index-1a.js.gz', bytes('zipped')],
  ['assets/index-1a.js.br', bytes('packed')],
  ['assets/inter-2b.woff2', bytes('font')],
  ['assets/new.wasm', bytes('?')],
])
const files = consoleFilesOf(built)!

test('there is nothing to serve without a build', () => {
  expect(consoleFilesOf(new Map())).toBeUndefined()
  expect(consoleFilesOf(new Map([['assets/index-1a.js', bytes('plain')]]))).toBeUndefined()
})

test('the page has the nonce of its reply where its script finds it', () => {
  expect(files.page('abc+/==').toString()).toBe(
    '<!doctype html><html><head>\n    <meta name="csp-nonce" content="abc+/=="><title>x</title></head></html>',
  )
})

test('serves files of the build by their names, and nothing else', () => {
  expect(files.asset('index-1a.js')).toMatchObject({ type: 'text/javascript; charset=utf-8' })
  expect(files.asset('inter-2b.woff2')).toMatchObject({ type: 'font/woff2', packed: [] })
  expect(files.asset('new.wasm')).toMatchObject({ type: 'application/octet-stream' })
  for (const name of [
    '',
    '.built',
    '../index.html',
    'index.html',
    'index-1a.js.gz',
    'index-1a.js.br',
    'assets/index-1a.js',
    '__proto__',
    'constructor',
    '../../package.json',
    '..%2findex.html',
    '/etc/passwd',
  ])
    expect(files.asset(name), name).toBeUndefined()
})

test.each([
  ['', undefined],
  ['identity', undefined],
  ['gzip', 'gzip'],
  ['gzip, deflate, br, zstd', 'br'],
  ['br;q=0.1, gzip;q=1.0', 'br'],
  ['GZIP', 'gzip'],
  ['br;q=0, gzip', 'gzip'],
  ['br;q=0.000, gzip;q=0', undefined],
  ['brotli, xgzip', undefined],
  ['gzip;level=9', undefined],
  ['*', undefined],
  [',,;q=,', undefined],
  [`${'a'.repeat(8_000)},br`, 'br'],
  [' '.repeat(8_000), undefined],
])('answers Accept-Encoding %j with %s', (accepted, coding) => {
  const asset = files.asset('index-1a.js')!
  const expected = { br: 'packed', gzip: 'zipped', undefined: 'plain' }[String(coding)]
  const form = formFor(asset, accepted)
  expect([form.coding, form.bytes.toString()]).toEqual([coding, expected])
  expect(formFor(files.asset('inter-2b.woff2')!, accepted)).toEqual({ bytes: bytes('font') })
})
