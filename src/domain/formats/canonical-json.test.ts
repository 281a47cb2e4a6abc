import { expect, test } from 'vitest'
import { canonicalJson } from './canonical-json.ts'

test('gives equal values one text, whatever the order of their keys', () => {
  const one = { b: { d: [1, { y: 1, x: 2 }], c: null }, a: 'é', skipped: undefined }
  const other = { a: 'é', b: { c: null, d: [1, { x: 2, y: 1 }] } }
  expect(canonicalJson(one)).toBe('{"a":"é","b":{"c":null,"d":[1,{"x":2,"y":1}]}}')
  expect(canonicalJson(other)).toBe(canonicalJson(one))
})

test('keeps the order of arrays, and tells a number from its text', () => {
  const texts = [{ a: [1, 2] }, { a: [2, 1] }, { a: ['1', 2] }, { a: { 0: 1, 1: 2 } }].map(canonicalJson)
  expect(new Set(texts).size).toBe(4)
})
