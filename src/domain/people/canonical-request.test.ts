import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { confirmedText, toCanonicalJson } from './canonical-request.ts'

describe('toCanonicalJson', () => {
  test('writes the example of RFC 8785 §3.2.2', () => {
    const input = `{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`
    expect(toCanonicalJson(JSON.parse(input))).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  test('sorts the example of RFC 8785 §3.2.3 by UTF-16 units', () => {
    const input = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    }
    expect(Object.values(JSON.parse(toCanonicalJson(input)))).toHaveLength(7)
    const order = [...toCanonicalJson(input).matchAll(/:"([^"]*)"/g)].map((match) => match[1])
    expect(order).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ])
  })

  // RFC 8785, appendix B: IEEE 754 bits and their text.
  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('writes the number %s as %s', (bits, text) => {
    expect(toCanonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text)
  })

  test('puts names that are integers where their text belongs', () => {
    expect(toCanonicalJson({ 9: 1, 10: 2, a: 3 })).toBe('{"10":2,"9":1,"a":3}')
  })

  test('leaves out what is not there, as JSON does', () => {
    expect(toCanonicalJson({ a: undefined, b: [] })).toBe('{"b":[]}')
  })

  test.each([
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['half of a surrogate pair', '\ud800'],
    ['such a name', { '\udc00': 1 }],
    ['a big integer', 1n],
    ['nothing', undefined],
    ['a function', () => 1],
    ['nothing in a list', [undefined]],
  ])('refuses %s', (_, value) => {
    expect(() => toCanonicalJson(value)).toThrow(TypeError)
  })

  test('two values have one text only if they are equal, whatever the order of their members', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = toCanonicalJson(value)
        expect(toCanonicalJson(JSON.parse(text))).toBe(text)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })
})

test('a confirmed request is its method, path, body, nonce and time', () => {
  const asked = { method: 'POST', path: '/v1/admin/agents?x=1', body: { scopes: ['admin:*'], name: 'a' } }
  expect(confirmedText(asked, { nonce: 'n', time: '2026-01-01T00:00:00.000Z' })).toBe(
    '{"body":{"name":"a","scopes":["admin:*"]},"method":"POST","nonce":"n","path":"/v1/admin/agents?x=1","time":"2026-01-01T00:00:00.000Z"}',
  )
})
