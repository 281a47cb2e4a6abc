import { expect, it } from 'vitest'
import { claimMetadata, MAX_CLAIM_BYTES } from './claim-metadata.ts'
import type { Claims } from './identity.ts'

const shown = (claims: Claims, subject = 'a') =>
  claimMetadata('acme', { issuer: 'https://agents.test', subject, claims })

it('shows what the token says, without what every token has', () => {
  const plain = { iss: 'x', sub: 'a', aud: 'y', exp: 1, iat: 1, nbf: 1, jti: 'z' }
  expect(shown({ ...plain, team: 'red', groups: ['a'], nested: { on: true } })).toEqual({
    platform: 'acme',
    issuer: 'https://agents.test',
    subject: 'a',
    claims: { team: 'red', groups: ['a'], nested: { on: true } },
  })
})

it('leaves out what does not fit, and says how much', () => {
  const long = shown({ first: 'a', big: 'x'.repeat(16_000), last: 'b' })
  expect(long).toMatchObject({ claims: { first: 'a', last: 'b' }, claims_left_out: 1 })
  const many = shown(Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`c${at}`, at])))
  expect(Object.keys(many.claims).length).toBe(48)
  expect(many.claims_left_out).toBe(2_952)
  const wide = shown(
    Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`c${at}`, '\u{1f600}'.repeat(100)])),
  )
  expect(Buffer.byteLength(JSON.stringify(wide.claims))).toBeLessThanOrEqual(MAX_CLAIM_BYTES)
  expect(wide.claims_left_out).toBeGreaterThan(20)
})

it('reads nothing that is nested deeply', () => {
  const deep: unknown = JSON.parse(`${'['.repeat(7_000)}${']'.repeat(7_000)}`)
  expect(shown({ deep, flat: 1 })).toMatchObject({ claims: { flat: 1 }, claims_left_out: 1 })
})

it('keeps claims that have the names of a prototype, and changes none', () => {
  const claims = JSON.parse('{"__proto__":{"scopes":["admin"]},"constructor":"x","toString":1}') as Claims
  const { claims: kept } = shown(claims)
  expect(Object.keys(kept)).toEqual(['__proto__', 'constructor', 'toString'])
  expect(Object.getPrototypeOf(kept)).toBe(Object.prototype)
  expect(JSON.parse(JSON.stringify(kept))).toEqual(kept)
})

it('cuts a very long subject for show', () => {
  const { subject } = shown({}, '\u{1f600}'.repeat(4_000))
  expect(subject.length).toBe(1_024)
  expect(subject.isWellFormed()).toBe(true)
})
