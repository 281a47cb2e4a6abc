import { createHmac, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createHasher, generateDataKey, isBearerForm, mintBearer, mintClientSecret } from './bearer.ts'

test('minted secrets have their form and never repeat', () => {
  const bearers = Array.from({ length: 1000 }, mintBearer)
  const secrets = Array.from({ length: 1000 }, mintClientSecret)
  expect(new Set(bearers).size).toBe(1000)
  expect(new Set(secrets).size).toBe(1000)
  expect(bearers.every(isBearerForm)).toBe(true)
  expect(bearers[0]).toMatch(/^ckr_[0-9a-f]{48}$/)
  for (const secret of secrets) expect(secret).toMatch(/^cks_[0-9a-f]{64}$/)
})

test.each([
  ['upper case', (text: string) => text.toUpperCase()],
  ['upper-case hex', (text: string) => text.slice(0, 4) + text.slice(4).toUpperCase().replace(/[0-9]/, 'A')],
  ['a trailing newline', (text: string) => `${text}\n`],
  ['a leading space', (text: string) => ` ${text}`],
  ['one character less', (text: string) => text.slice(0, -1)],
  ['one character more', (text: string) => `${text}0`],
  ['another prefix', (text: string) => `ckx_${text.slice(4)}`],
  ['a newline inside', (text: string) => `${text.slice(0, -1)}\n`],
  ['a full-width digit', (text: string) => `${text.slice(0, -1)}１`],
  ['nothing', () => ''],
])('the forms refuse %s', (_name, change) => {
  expect(isBearerForm(change(mintBearer()))).toBe(false)
})

test('a client secret is not a bearer token', () => {
  expect(isBearerForm(mintClientSecret())).toBe(false)
})

describe('createHasher', () => {
  const key = generateDataKey()
  const hasher = createHasher(key)
  const bearer = mintBearer()

  test('is HMAC-SHA-256 in base64url', () => {
    expect(hasher.hash(bearer)).toBe(createHmac('sha256', key).update(bearer).digest('base64url'))
    expect(hasher.hash(bearer)).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  test('matches its own hash and nothing else', () => {
    const stored = hasher.hash(bearer)
    expect(hasher.matches(bearer, stored)).toBe(true)
    expect(hasher.matches(mintBearer(), stored)).toBe(false)
    expect(createHasher(generateDataKey()).matches(bearer, stored)).toBe(false)
    for (const wrong of ['', `${stored}=`, `${stored}\n`, stored.slice(1), `${stored.slice(0, -1)}é`]) {
      expect(hasher.matches(bearer, wrong)).toBe(false)
    }
  })

  test('takes a key of 32 bytes only, and does not follow later changes of the buffer', () => {
    expect(() => createHasher(randomBytes(31))).toThrow()
    const own = generateDataKey()
    const made = createHasher(own)
    const before = made.hash('x')
    own.fill(0)
    expect(made.hash('x')).toBe(before)
  })
})
