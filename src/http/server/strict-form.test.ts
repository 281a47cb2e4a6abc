import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Problem } from '../../domain/problems.ts'
import { MAX_FORM_FIELDS, parseStrictForm } from './strict-form.ts'

const parse = (text: string | Buffer) => parseStrictForm(Buffer.from(text as string))

describe('parseStrictForm', () => {
  it('reads what a client of RFC 6749 sends', () => {
    expect({
      ...parse('grant_type=client_credentials&client_id=agent_1&scope=openid+github%3Ao%2Fr'),
    }).toEqual({
      grant_type: 'client_credentials',
      client_id: 'agent_1',
      scope: 'openid github:o/r',
    })
    expect({ ...parse('a=b=c&u=%C3%A9%F0%9F%98%80&raw=x y') }).toEqual({ a: 'b=c', u: 'é😀', raw: 'x y' })
    expect({ ...parse('') }).toEqual({})
  })

  it('treats a parameter without a value as omitted', () => {
    expect({ ...parse('scope=&client_id&grant_type=x') }).toEqual({ grant_type: 'x' })
  })

  it('gives an object without a prototype', () => {
    const fields = parse('__proto__=x&toString=y')
    expect(Object.getPrototypeOf(fields)).toBeNull()
    expect(Object.keys(fields)).toEqual(['__proto__', 'toString'])
  })

  it.each<[string, string | Buffer]>([
    ['a repeated parameter', 'scope=a&scope=b'],
    ['a parameter repeated in another spelling', 'scope=a&%73cope=b'],
    ['a parameter repeated without a value', 'scope=a&scope='],
    ['a parameter without a name', '=x'],
    ['an empty parameter', 'a=1&&b=2'],
    ['a trailing ampersand', 'a=1&'],
    ['a bad escape', 'a=%zz'],
    ['a cut escape', 'a=%4'],
    ['a lone percent', 'a=100%'],
    ['a bad escape in a name', '%=1'],
    ['bad UTF-8', 'a=%ff'],
    ['an overlong form', 'a=%c0%af'],
    ['a surrogate', 'a=%ed%a0%80'],
    ['NUL', 'a=%00'],
    ['raw NUL', 'a=\0'],
    ['a line feed', 'a=1%0a2'],
    ['a raw line feed', 'a=1\n'],
    ['DEL', 'a=%7f'],
    ['raw bytes beyond ASCII', Buffer.from('a=é')],
    ['too many parameters', Array.from({ length: MAX_FORM_FIELDS + 1 }, (_, i) => `p${i}=1`).join('&')],
  ])('refuses %s', (_name, text) => {
    expect(() => parse(text)).toThrow(Problem)
  })

  it('accepts as many parameters as are allowed', () => {
    const text = Array.from({ length: MAX_FORM_FIELDS }, (_, i) => `p${i}=1`).join('&')
    expect(Object.keys(parse(text))).toHaveLength(MAX_FORM_FIELDS)
  })

  it('reads back what URLSearchParams writes', () => {
    const text = fc
      .string({ minLength: 1, unit: 'grapheme' })
      .filter((value) => !/\p{Cc}/u.test(value) && value.isWellFormed())
    fc.assert(
      fc.property(fc.dictionary(text, text, { maxKeys: 8 }), (fields) => {
        expect({ ...parse(new URLSearchParams(fields).toString()) }).toEqual({ ...fields })
      }),
    )
  })
})
