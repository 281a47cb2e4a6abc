import { createCipheriv, createSecretKey, hkdfSync, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createSealer, parseMasterKeys, SealError } from './seal.ts'

const one = { version: 1, key: randomBytes(32) }
const two = { version: 2, key: randomBytes(32) }
const hex = one.key.toString('hex')

describe('parseMasterKeys', () => {
  test.each([
    ['the text of a new key file', `1:${hex}\n`],
    ['bare hex', hex],
    ['bare upper-case hex', hex.toUpperCase()],
    ['base64', `1:${one.key.toString('base64')}`],
    ['base64url', `1:${one.key.toString('base64url')}`],
    ['base64 without padding', `1:${one.key.toString('base64').replace('=', '')}`],
    ['comments, blank lines, CRLF, BOM', `\uFEFF# old\r\n\r\n 1 : ${hex}  # since May\r\n`],
  ])('takes %s', (_name, text) => {
    expect(parseMasterKeys(text)).toEqual([one])
  })

  test('takes several versions in any order, the lowest first in the answer', () => {
    const keys = parseMasterKeys(`2:${two.key.toString('base64')}\n1:${hex}\n`)
    expect(keys).toEqual([one, two])
  })

  test.each([
    ['nothing', '', /no key/],
    ['comments only', '# 1:abc\n', /no key/],
    ['63 hex characters', `1:${hex.slice(1)}`, /line 1.*32 bytes/],
    ['66 hex characters', `\n1:${hex}00`, /line 2.*32 bytes/],
    ['base64 with stray low bits', `1:${'AbCdEfGh'.repeat(5)}AAB`, /32 bytes/],
    ['version 0', `0:${hex}`, /version/],
    ['a negative version', `-1:${hex}`, /version/],
    ['a version over 2^31', `4294967296:${hex}`, /version/],
    ['a version with a leading zero', `01:${hex}`, /version/],
    ['a version that is no number', `a:${hex}`, /version/],
    ['a version twice', `1:${hex}\n1:${two.key.toString('hex')}`, /twice/],
    ['one key under two versions', `1:${hex}\n2:${hex}`, /repeats/],
    ['two bare keys', `${hex}\n${two.key.toString('hex')}`, /several keys/],
    ['a key of zeros', `1:${'0'.repeat(64)}`, /not random/],
    ['two colons', `1:2:${hex}`, /32 bytes/],
  ])('refuses %s', (_name, text, message) => {
    expect(() => parseMasterKeys(text)).toThrow(message)
  })

  test('never shows a key in a message', () => {
    for (const text of [`1:${hex}0`, `x:${hex}`, `1:${hex}\n1:${hex}`, `${hex}\n${hex}`]) {
      try {
        parseMasterKeys(text)
        expect.unreachable()
      } catch (error) {
        expect(String(error)).not.toContain(hex.slice(0, 8))
      }
    }
  })
})

describe('createSealer', () => {
  const sealer = createSealer([one])
  const sealed = sealer.seal('backends', 'be_1', 'config', '{"password":"hunter2"}')
  const bytes = Buffer.from(sealed.split('.')[2]!, 'base64url')
  const rewrite = (changed: Buffer, version = '1') => `s1.${version}.${changed.toString('base64url')}`
  const open = (text: string) => createSealer([one, two]).open('backends', 'be_1', 'config', text)

  test.each(['', 'a', 'ключ 🔑', 'x'.repeat(100_000)])('opens what it sealed', (plaintext) => {
    expect(sealer.open('t', 'i', 'c', sealer.seal('t', 'i', 'c', plaintext))).toBe(plaintext)
  })

  test('has the form s1.<version>.<nonce, ciphertext, tag>, with a fresh nonce each time', () => {
    expect(sealed).toMatch(/^s1\.1\.[A-Za-z0-9_-]+$/)
    expect(bytes.length).toBe(12 + '{"password":"hunter2"}'.length + 16)
    expect(sealer.versionOf(sealed)).toBe(1)
    const nonces = Array.from({ length: 1000 }, () => sealer.seal('t', 'i', 'c', '').slice(5, 21))
    expect(new Set(nonces).size).toBe(1000)
  })

  test('refuses every single changed bit', () => {
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      expect(() => open(rewrite(changed))).toThrow(SealError)
    }
  })

  test('refuses every truncation, a 4-byte tag among them', () => {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(() => open(rewrite(bytes.subarray(0, length)))).toThrow(SealError)
    }
    expect(() => open(rewrite(Buffer.concat([bytes, Buffer.alloc(1)])))).toThrow(SealError)
  })

  test.each([
    ['another version that is here', rewrite(bytes, '2')],
    ['a version that is not here', rewrite(bytes, '3')],
    ['version 01', rewrite(bytes, '01')],
    ['another form', sealed.replace('s1', 's2')],
    ['padding', `${sealed}=`],
    ['a trailing newline', `${sealed}\n`],
    ['a leading space', ` ${sealed}`],
    ['a fourth part', `${sealed}.AA`],
    ['base64 characters', `s1.1.${bytes.toString('base64')}`],
    ['nothing', ''],
    ['plain text', '{"password":"hunter2"}'],
  ])('refuses %s', (_name, text) => {
    expect(() => open(text)).toThrow(SealError)
  })

  test('refuses stray low bits in the last character, so a value has one text', () => {
    const text = sealer.seal('t', 'i', 'c', 'ab')
    expect(Buffer.from(text.slice(5), 'base64url').length % 3).toBe(0)
    const odd = sealer.seal('t', 'i', 'c', 'abc')
    const last = odd.at(-1)!
    const next = String.fromCharCode(last.charCodeAt(0) + 1)
    expect(Buffer.from(odd.slice(5, -1) + next, 'base64url')).toEqual(Buffer.from(odd.slice(5), 'base64url'))
    expect(() => sealer.open('t', 'i', 'c', odd.slice(0, -1) + next)).toThrow(SealError)
  })

  test.each([
    ['table', 'agents', 'be_1', 'config'],
    ['row', 'backends', 'be_2', 'config'],
    ['column', 'backends', 'be_1', 'handle'],
  ])('does not open in another %s', (_name, table, id, column) => {
    expect(() => sealer.open(table, id, column, sealed)).toThrow(SealError)
  })

  test('refuses a separator inside a part, so that no two places share an AAD', () => {
    expect(() => sealer.seal('a|b', 'c', 'd', 'x')).toThrow(SealError)
    expect(() => sealer.seal('a', 'b|c', 'd', 'x')).toThrow(SealError)
    expect(() => sealer.seal('a', 'b', 'c|d', 'x')).toThrow(SealError)
  })

  test('refuses text that UTF-8 cannot hold', () => {
    expect(() => sealer.seal('a', 'b', 'c', '\ud800')).toThrow(SealError)
  })

  test('seals under the newest key and opens under every one', () => {
    const both = createSealer([two, one])
    expect(both.newestVersion).toBe(2)
    expect(both.open('backends', 'be_1', 'config', sealed)).toContain('hunter2')
    const newer = both.seal('t', 'i', 'c', 'x')
    expect(both.versionOf(newer)).toBe(2)
    expect(() => sealer.open('t', 'i', 'c', newer)).toThrow(/version 2/)
    expect(createSealer([two]).open('t', 'i', 'c', newer)).toBe('x')
  })

  test('never shows data in an error', () => {
    for (const text of [rewrite(bytes, '9'), rewrite(bytes.subarray(0, 40)), `${sealed}=`]) {
      try {
        open(text)
        expect.unreachable()
      } catch (error) {
        expect(String(error)).not.toMatch(/hunter|password/)
        expect(String(error)).not.toContain(sealed.slice(5, 15))
        expect((error as Error).cause).toBeUndefined()
      }
    }
  })

  test('does not use the master key itself', () => {
    const nonce = randomBytes(12)
    const make = (key: Buffer) => {
      const cipher = createCipheriv('aes-256-gcm', createSecretKey(key), nonce).setAAD(Buffer.from('t|i|c|1'))
      const body = Buffer.concat([cipher.update('x'), cipher.final()])
      return rewrite(Buffer.concat([nonce, body, cipher.getAuthTag()]))
    }
    expect(() => sealer.open('t', 'i', 'c', make(one.key))).toThrow(SealError)
    const derived = Buffer.from(hkdfSync('sha256', one.key, '', 'mayfly seal', 32))
    expect(sealer.open('t', 'i', 'c', make(derived))).toBe('x')
  })

  test('refuses bad keys', () => {
    expect(() => createSealer([])).toThrow()
    expect(() => createSealer([one, { version: 1, key: two.key }])).toThrow()
    expect(() => createSealer([{ version: 1, key: randomBytes(16) }])).toThrow()
    expect(() => createSealer([{ version: 1.5, key: one.key }])).toThrow()
  })
})

describe('the key check', () => {
  test('recognises its keys, through a rotation too', () => {
    const before = createSealer([one]).keyCheck()
    const both = createSealer([two, one])
    expect(createSealer([one]).keyCheck()).toBe(before)
    expect(createSealer([one]).matchesCheck(before)).toBe(true)
    expect(both.matchesCheck(before)).toBe(true)
    expect(createSealer([two]).matchesCheck(both.keyCheck())).toBe(true)
  })

  test('tells a wrong key of any version, and a missing one', () => {
    const stored = createSealer([one, two]).keyCheck()
    const other = randomBytes(32)
    expect(createSealer([{ version: 1, key: other }]).matchesCheck(stored)).toBe(false)
    expect(createSealer([{ version: 1, key: other }, two]).matchesCheck(stored)).toBe(false)
    expect(createSealer([{ version: 3, key: other }]).matchesCheck(stored)).toBe(false)
  })

  test.each(['', ' ', 'c1.1', 'c1.1.', 's1.1.AAAA'])('refuses %j', (stored) => {
    expect(createSealer([one]).matchesCheck(stored)).toBe(false)
  })

  test('says nothing of the key', () => {
    const check = createSealer([one]).keyCheck()
    expect(check).not.toContain(one.key.toString('base64url'))
    expect(check).toMatch(/^c1\.1\.[A-Za-z0-9_-]{43}$/)
  })
})
