import { sign } from 'node:crypto'
import { createAccount, createOperator, createUser, fromPublic, fromSeed } from '@nats-io/nkeys'
import { describe, expect, test } from 'vitest'
import { accountKeyOf, isAccountId, newUserKey } from './nkeys.ts'

const seedOf = (key: ReturnType<typeof createUser>) => new TextDecoder().decode(key.getSeed())

describe('keys of NATS', () => {
  test('are read as the library of NATS writes them, and sign alike', () => {
    const account = createAccount()
    const { id, privateKey } = accountKeyOf(` ${seedOf(account)}\n`)
    expect(id).toBe(account.getPublicKey())
    expect(isAccountId(id)).toBe(true)
    const text = Buffer.from('text')
    expect(fromPublic(id).verify(text, sign(null, text, privateKey))).toBe(true)
  })

  test('are written as that reads them', async () => {
    const { id, seed } = await newUserKey()
    expect(id).toMatch(/^U[A-Z2-7]{55}$/)
    expect(fromSeed(new TextEncoder().encode(seed)).getPublicKey()).toBe(id)
  })

  test('of another sort, or with a wrong character, are refused', () => {
    const seed = seedOf(createAccount())
    const changed = `${seed.slice(0, 20)}${seed[20] === 'A' ? 'B' : 'A'}${seed.slice(21)}`
    for (const wrong of [
      '',
      'SA',
      changed,
      seed.toLowerCase(),
      seedOf(createUser()),
      seedOf(createOperator()),
    ])
      expect(() => accountKeyOf(wrong)).toThrow('signing_key')
    const publicKey = createAccount().getPublicKey()
    expect(isAccountId(`${publicKey.slice(0, -1)}${publicKey.endsWith('A') ? 'B' : 'A'}`)).toBe(false)
    expect(isAccountId(createUser().getPublicKey())).toBe(false)
  })
})
