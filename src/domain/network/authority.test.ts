import { expect, test } from 'vitest'
import { authorityText, hostHeader, readAuthority, readOrigin } from './authority.ts'

const read = (text: string) => {
  const found = readAuthority(text, 'https')
  return found && authorityText(found)
}

test('reads the many forms of one authority as one', () => {
  const forms = [
    'api.example.com',
    'API.Example.COM',
    'api.example.com.',
    'api.example.com:443',
    'api.example.com.:0443',
  ]
  expect(forms.map(read)).toEqual(forms.map(() => 'api.example.com:443'))
  expect(['ａｐｉ.example.com', 'api。example.com', 'ap\u00adi.example.com'].map(read)).toEqual(
    Array(3).fill('api.example.com:443'),
  )
  expect(
    ['bücher.example', 'BÜCHER.example', 'xn--bcher-kva.example', 'XN--BCHER-KVA.example.'].map(read),
  ).toEqual(Array(4).fill('xn--bcher-kva.example:443'))
  expect(['127.0.0.1', '127.1', '0x7f.0.0.1', '2130706433', '017700000001', '127.0.0.1.'].map(read)).toEqual(
    Array(6).fill('127.0.0.1:443'),
  )
  expect(['[::1]', '[0:0:0:0:0:0:0:1]', '[::0.0.0.1]', '[0000::0001]:443'].map(read)).toEqual(
    Array(4).fill('[::1]:443'),
  )
  expect(read('[::FFFF:127.0.0.1]:8443')).toBe('[::ffff:7f00:1]:8443')
  expect(read('my_db')).toBe('my_db:443')
})

const HOSTILE = [
  ...[
    '',
    '.',
    '..',
    'a..',
    'a..b',
    '.a',
    ':443',
    'a:',
    'a:b',
    'a:0',
    'a:65536',
    'a:123456',
    'a:-1',
    'a:+1',
    'a:1:2',
  ],
  ...[
    'u@a',
    'u:p@a',
    'a/b',
    'a?b',
    'a#b',
    'a\\b',
    '%61',
    'a%00',
    'a\u0000b',
    'a b',
    ' a',
    'a ',
    'a\n',
    'a\r\nHost: b',
  ],
  ...[
    '[::1',
    '::1',
    '[::1]]',
    '[::1%25eth0]',
    '[::1]x',
    '[1.2.3.4]',
    '[]',
    'a*',
    '*',
    'a,b',
    '256.1.1.1',
    '1.2.3.4.5',
  ],
  ...[
    '0xzz.1',
    'a.0x',
    'a.1',
    'a.9b',
    `${'a'.repeat(64)}.example`,
    `${'a.'.repeat(127)}a`,
    '\ud800',
    'a<b',
    'a|b',
  ],
]
test.each(HOSTILE)('refuses %j', (text) => {
  expect(read(text)).toBeUndefined()
})

test('a Host names a port only where it is not that of the scheme', () => {
  expect(hostHeader({ host: 'a.example', port: 443 }, 'https')).toBe('a.example')
  expect(hostHeader({ host: 'a.example', port: 80 }, 'http')).toBe('a.example')
  expect(hostHeader({ host: '[::1]', port: 80 }, 'https')).toBe('[::1]:80')
})

test('reads origins, with and without a star', () => {
  const port = 443
  expect(readOrigin('https://A.example')).toEqual({
    scheme: 'https',
    host: 'a.example',
    port,
    wildcard: false,
  })
  expect(readOrigin('https://*.a.example')).toEqual({
    scheme: 'https',
    host: 'a.example',
    port,
    wildcard: true,
  })
  expect(readOrigin('http://localhost:8200')).toMatchObject({ scheme: 'http', port: 8200 })
})
