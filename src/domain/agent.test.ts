import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nameKey, requireName } from './agent.ts'

test.each(['a', '0', 'CI-runner_1.prod', 'x'.repeat(128), 'administrator', 'a..b', 'my-admin'])(
  'accepts %.20s',
  (name) => {
    expect(() => requireName(name)).not.toThrow()
  },
)

test.each(
  [
    [
      '',
      ' ',
      '.',
      '..',
      '-a',
      '_a',
      '.a',
      'a b',
      'a/b',
      '../etc',
      'a\\b',
      'a:b',
      'a@b',
      'a<b>',
      'a\n',
      '\na',
      'a\r',
      'a\0',
      'a\u001b',
    ],
    [
      'ä',
      '\u0430',
      'a\u200b',
      '%61',
      'a%2e',
      'x'.repeat(129),
      'x'.repeat(1_000_000),
      'a*',
      'a?',
      '"a"',
      "a'",
      'a;b',
      'a&b',
      'a#b',
    ],
  ].flat(),
)('refuses %.30j', (name) => {
  expect(() => requireName(name)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})

test.each(['admin', 'ADMIN', 'Openid', 'local', 'system', 'mayfly', 'MayFly'])('%s is reserved', (name) => {
  expect(() => requireName(name)).toThrow(expect.objectContaining({ code: 'conflict' }))
})

test('names the field and never shows the value', () => {
  expect(() => requireName('<x>', 'backend')).toThrow(/^"backend" is/)
  expect(() => requireName('admin', 'backend')).toThrow('This backend is reserved.')
})

test('names that differ by case alone share their key', () => {
  expect(nameKey('CI-Runner')).toBe(nameKey('ci-rUNNER'))
  fc.assert(
    fc.property(
      fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/),
      (name) => nameKey(name.toUpperCase()) === nameKey(name),
    ),
  )
})
