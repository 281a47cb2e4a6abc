import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BackendError } from '../../domain/backend-error.ts'
import { fillHeader, fillJson, fillPairs, fillPath, pointAt } from './template.ts'

const HOSTILE = [
  '../..',
  '..',
  '.',
  '',
  'a/b',
  'a?b=c',
  'a#b',
  'a%2fb',
  '%2e%2e',
  'a\\b',
  'a:b',
  '@evil',
  '//evil',
  'ä',
  '\u0000',
]

describe('a path', () => {
  test.each(HOSTILE)('%j stays within its segment, or is refused', (value) => {
    let path: string
    try {
      path = fillPath('/v1/projects/{project}/keys', { project: value })
    } catch (error) {
      expect(error).toMatchObject({ fault: 'unsupported' })
      return
    }
    const url = new URL(path, 'https://api.example')
    expect(url.origin).toBe('https://api.example')
    expect(url.search + url.hash).toBe('')
    expect(url.pathname.split('/')).toEqual(['', 'v1', 'projects', encodeURIComponent(value), 'keys'])
  })

  test('no text of any kind leaves its segment', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        try {
          const { pathname, origin, search, hash } = new URL(
            fillPath('/a/{x}/b', { x: value }),
            'https://api.example',
          )
          expect([origin, search, hash]).toEqual(['https://api.example', '', ''])
          expect(pathname.split('/').map(decodeURIComponent)).toEqual(['', 'a', value, 'b'])
        } catch (error) {
          expect(error).toBeInstanceOf(BackendError)
        }
      }),
    )
  })

  test('refuses dots that only together are a step up', () => {
    expect(() => fillPath('/a/.{x}', { x: '.' })).toThrow(BackendError)
  })
})

test.each(['a\r\nX-Admin: 1', 'a\nb', 'a\u0000', '\u007f', 'ä', '\u2028'])('a header refuses %j', (value) => {
  expect(() => fillHeader('Name {x}', { x: value })).toThrow(BackendError)
})

test('a query and a form keep a value in its pair', () => {
  fc.assert(
    fc.property(fc.string(), (value) => {
      const read = [...new URLSearchParams(fillPairs({ a: '{x}', b: 'c' }, { x: value }).toString())]
      expect(read).toEqual([
        ['a', value],
        ['b', 'c'],
      ])
    }),
  )
})

describe('JSON', () => {
  test('a value stays a value, whatever it is', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        fc.pre(!['name', 'only'].includes(value))
        const filled = JSON.parse(
          JSON.stringify(fillJson({ name: 'x {x}', '{x}': 1, only: '{x}' }, { x: value }, [])),
        )
        expect(filled).toEqual(
          Object.fromEntries([
            ['name', `x ${value}`],
            [value, 1],
            ['only', value],
          ]),
        )
      }),
      { examples: [['","role":"admin'], ['{y}'], ['__proto__']] },
    )
  })

  test('braces in a value are not filled in again', () => {
    expect(fillJson('{a} {b}', { a: '{b}', b: 'x' }, [])).toBe('{b} x')
  })

  test('keeps the type of a whole value, and leaves out what has none', () => {
    const vars = { n: 5, list: ['a'], none: undefined }
    expect(fillJson({ n: '{n}', l: '{list}', no: '{none}', t: '{n}s' }, vars, [])).toEqual({
      n: 5,
      l: ['a'],
      t: '5s',
    })
  })

  test('gives one item per scope, or one text', () => {
    const scopes = [{ p: 'a' }, { p: 'b' }]
    expect(fillJson({ all: { $each: { id: '{p}' } } }, {}, scopes)).toEqual({
      all: [{ id: 'a' }, { id: 'b' }],
    })
    expect(fillJson({ $each: 'g:{p}', $join: ' ' }, {}, scopes)).toBe('g:a g:b')
    expect(() => fillJson({ $each: '{p}', $join: ' ' }, {}, [{ p: 'a b' }])).toThrow(BackendError)
  })

  test('refuses a key that is there already', () => {
    expect(() => fillJson({ role: 'user', '{x}': 'admin' }, { x: 'role' }, [])).toThrow(BackendError)
  })
})

// RFC 6901 §5
test.each([
  ['/foo', ['bar', 'baz']],
  ['/foo/0', 'bar'],
  ['/', 0],
  ['/a~1b', 1],
  ['/m~0n', 8],
  ['/foo/-', undefined],
  ['/foo/01', undefined],
  ['/foo/length', undefined],
  ['/__proto__', undefined],
  ['/no/thing', undefined],
])('the pointer %s', (pointer, value) => {
  expect(pointAt({ foo: ['bar', 'baz'], '': 0, 'a/b': 1, 'm~n': 8 }, pointer)).toEqual(value)
})
