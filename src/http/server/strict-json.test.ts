import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_JSON_DEPTH } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import { parseStrictJson } from './strict-json.ts'

const parse = (text: string | Buffer) => parseStrictJson(Buffer.from(text as string))

function refusal(text: string | Buffer): Problem {
  try {
    parse(text)
  } catch (error) {
    expect(error).toBeInstanceOf(Problem)
    return error as Problem
  }
  throw new Error(`accepted: ${JSON.stringify(text.toString('latin1').slice(0, 80))}`)
}

const HOSTILE: [string, string | Buffer][] = [
  ['nothing', ''],
  ['white space only', ' \n\t'],
  ['byte order mark', '\ufeff{}'],
  ['byte order mark after white space', ' \ufeff{}'],
  ['UTF-16', Buffer.from('{"a":1}', 'utf16le')],
  ['a stray continuation byte', Buffer.from([0x22, 0x80, 0x22])],
  ['an overlong slash', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
  ['an overlong NUL', Buffer.from([0x22, 0xc0, 0x80, 0x22])],
  ['an encoded surrogate (CESU-8)', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ['a cut character', Buffer.from([0x22, 0xe2, 0x82, 0x22])],
  ['beyond U+10FFFF', Buffer.from([0x22, 0xf4, 0x90, 0x80, 0x80, 0x22])],
  ['depth 9, arrays', '['.repeat(9) + ']'.repeat(9)],
  ['depth 9, objects', `${'{"a":'.repeat(9)}1${'}'.repeat(9)}`],
  ['depth 65536', '['.repeat(65_536)],
  ['depth 10000 of objects', '{"a":'.repeat(10_000)],
  ['the same key twice', '{"a":1,"a":1}'],
  ['the same key twice, escaped', '{"a":1,"\\u0061":2}'],
  ['the same key twice, far apart', '{"a":1,"b":{"a":2},"a":3}'],
  ['the empty key twice', '{"":1,"":2}'],
  ['a numeric key twice', '{"1":1,"1":2}'],
  ['__proto__', '{"__proto__":{"admin":true}}'],
  ['__proto__, escaped', '{"\\u005f_proto__":{}}'],
  ['__proto__, deep', '{"a":[{"__proto__":1}]}'],
  ['constructor', '{"constructor":{"prototype":{}}}'],
  ['prototype', '{"prototype":1}'],
  ['raw NUL in a string', '"a\0b"'],
  ['escaped NUL in a string', '"a\\u0000b"'],
  ['escaped NUL in a key', '{"a\\u0000":1}'],
  ['raw NUL after the text', '{}\0'],
  ['a lone high surrogate', '"\\ud800"'],
  ['a lone low surrogate', '"\\udc00"'],
  ['surrogates the wrong way round', '"\\udc00\\ud800"'],
  ['a high surrogate before a letter', '"\\ud83dx"'],
  ['a lone surrogate in a key', '{"\\uDBFF":1}'],
  ['two texts', '{}{}'],
  ['text after the end', 'true false'],
  ['a comma after the end', '{},'],
  ['a trailing comma in an object', '{"a":1,}'],
  ['a trailing comma in an array', '[1,]'],
  ['a leading comma', '[,1]'],
  ['a missing comma', '[1 2]'],
  ['a missing colon', '{"a" 1}'],
  ['a missing value', '{"a":}'],
  ['an unquoted key', '{a:1}'],
  ['a key in single quotes', "{'a':1}"],
  ['a number as a key', '{1:1}'],
  ['an open object', '{"a":1'],
  ['an open array', '[1'],
  ['an open string', '"abc'],
  ['an open escape', '"abc\\'],
  ['a string that ends in an escaped quote', '"abc\\"'],
  ['a mismatched bracket', '[1}'],
  ['a bracket too many', '[1]]'],
  ['a line feed in a string', '"a\nb"'],
  ['a tab in a string', '"a\tb"'],
  ['a control character after an escape', '"\\n\u0001"'],
  ['an unknown escape', '"\\x41"'],
  ['an octal escape', '"\\101"'],
  ['a short \\u', '"\\u12"'],
  ['a \\u with a sign', '"\\u+123"'],
  ['a \\u with white space', '"\\u 123"'],
  ['a comment', '{/* a */}'],
  ['a line comment', '1 // one'],
  ['a form feed as white space', '\f1'],
  ['a no-break space as white space', '\u00a01'],
  ['a leading zero', '01'],
  ['a minus and a leading zero', '-01'],
  ['a plus', '+1'],
  ['a lone minus', '-'],
  ['a point without digits', '1.'],
  ['a point first', '.5'],
  ['an exponent without digits', '1e'],
  ['hexadecimal', '0x10'],
  ['an underscore in a number', '1_000'],
  ['infinite', '1e400'],
  ['minus infinite', '-1e400'],
  ['2^53', '9007199254740992'],
  ['2^53 + 1', '9007199254740993'],
  ['-(2^53)', '-9007199254740992'],
  ['a huge integer', '9'.repeat(400)],
  ['a huge integer by its exponent', '1e20'],
  ['NaN', 'NaN'],
  ['Infinity', '-Infinity'],
  ['undefined', 'undefined'],
  ['a capital True', 'True'],
  ['a cut null', 'nul'],
  ['a long null', 'nulll'],
]

describe('parseStrictJson', () => {
  it.each(HOSTILE)('refuses %s', (_name, text) => {
    expect(refusal(text).code).toBe('invalid_request')
  })

  it('never says what was sent', () => {
    for (const text of [
      '{"cks_secret":1,"cks_secret":2}',
      '{"cks_secret"',
      'cks_secret',
      '"cks_secret\\q"',
    ]) {
      expect(refusal(text).message).not.toContain('cks')
    }
    expect(refusal('{"a":1,"a":2}').message).toBe('The body has the same field twice at character 8.')
  })

  it('accepts depth 8 and gives a plain object', () => {
    expect(parse('['.repeat(MAX_JSON_DEPTH) + ']'.repeat(MAX_JSON_DEPTH))).toEqual([[[[[[[[]]]]]]]])
    expect(Object.getPrototypeOf(parse('{"toString":1}'))).toBe(Object.prototype)
  })

  it.each([
    ' \t\r\n{ "a" : [ 1 , -0 , 0.5 , 1e3 , 1E-2 , 9007199254740991 ] } \n',
    '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00 ünï ☃ 😀 \u2028"',
    '"plain \\u0041 then \\\\ more"',
    '{"__proto":1,"toString":2,"hasOwnProperty":3,"10":4,"2":5}',
    'null',
    'true',
    'false',
    '""',
    '[]',
    '{}',
    '5e-324',
  ])('reads %s as JSON.parse does', (text) => {
    expect(parse(text)).toEqual(JSON.parse(text))
    expect(JSON.stringify(parse(text))).toBe(JSON.stringify(JSON.parse(text)))
  })

  it('accepts what JSON.stringify gives within the limits', () => {
    const bounded = fc.double({ noNaN: true, min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER })
    const text = fc.string({ unit: 'binary' }).map((value) => value.replaceAll('\0', ''))
    const key = text.filter((name) => !['__proto__', 'constructor', 'prototype'].includes(name))
    const { tree } = fc.letrec((tie) => ({
      leaf: fc.oneof(bounded, fc.integer(), text, fc.boolean(), fc.constant(null)),
      tree: fc.oneof(
        { maxDepth: MAX_JSON_DEPTH - 1, depthSize: 'medium' },
        tie('leaf'),
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(key, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
      ),
    }))
    fc.assert(
      fc.property(tree, fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
        const json = JSON.stringify(value, null, indent)
        expect(parse(json)).toEqual(JSON.parse(json))
      }),
      { numRuns: 500 },
    )
  })

  it('accepts nothing that JSON.parse refuses, and gives the same value', () => {
    const piece = fc.constantFrom(
      ...'{}[]:,"\\u0061ntrefals-+.eE0129 \n\t\x00'.split(''),
      '"a"',
      '"b":',
      '1',
      'null',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const text = pieces.join('')
        let value: unknown
        try {
          value = parse(text)
        } catch (error) {
          expect(error).toBeInstanceOf(Problem)
          return
        }
        expect(JSON.stringify(value)).toBe(JSON.stringify(JSON.parse(text)))
      }),
      { numRuns: 3_000 },
    )
  })

  it('throws nothing but problems on any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        try {
          parseStrictJson(Buffer.from(bytes))
        } catch (error) {
          expect(error).toBeInstanceOf(Problem)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
