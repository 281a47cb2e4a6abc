import { beforeEach, describe, expect, it } from 'vitest'
import { newSigner, type Signer } from '../../test/support/identity-tokens.ts'
import { IdentityRefused } from '../domain/identity/identity.ts'
import { readForeignJws } from '../keys/foreign-jws.ts'
import { FRESH_MS, fetchingIssuer, fixedIssuer, type Issuer, STALE_MS, UNKNOWN_KEY_MS } from './issuer.ts'
import { readKeySet } from './key-set.ts'

const [first, second, stranger] = [newSigner('ES256', 'a'), newSigner('ES256', 'b'), newSigner('ES256', 'z')]

const PAUSE_MS = 5_000

let published: readonly Signer[]
let isAway: boolean
let fetches: number
let failures: string[]
let time: number
let hold: Promise<void> | undefined
let issuer: Issuer

beforeEach(() => {
  published = [first]
  isAway = false
  fetches = 0
  failures = []
  time = 1_000_000
  hold = undefined
  issuer = fetchingIssuer({
    now: () => time,
    pauseMs: PAUSE_MS,
    onFailure: (detail) => failures.push(detail),
    fetchKeys: async () => {
      fetches += 1
      await hold
      if (isAway) throw new Error('away')
      return keysOf(published)
    },
  })
})

const keysOf = (signers: readonly Signer[]) => readKeySet({ keys: signers.map(({ jwk }) => jwk) }) ?? []

const token = (signer: Signer, kid: string | undefined = signer.kid) => signer.sign({ sub: 'job' }, { kid })
const nameless = (signer: Signer) => signer.sign({ sub: 'job' }, { kid: undefined })

async function outcome(text: string, of = issuer): Promise<string> {
  try {
    await of.requireSignature(text, readForeignJws(text))
    return 'signed'
  } catch (error) {
    if (error instanceof IdentityRefused) return error.reason
    throw error
  }
}

describe('the keys of an issuer', () => {
  it('are fetched when a token needs them, and then for an hour not again', async () => {
    expect(fetches).toBe(0)
    expect(await outcome(token(first))).toBe('signed')
    time += FRESH_MS - 1
    expect(await outcome(token(first))).toBe('signed')
    expect(fetches).toBe(1)
    time += 1
    expect(await outcome(token(first))).toBe('signed')
    expect(fetches).toBe(2)
  })

  it('are fetched once for all who wait', async () => {
    const all = await Promise.all(Array.from({ length: 50 }, () => outcome(token(first))))
    expect(new Set(all)).toEqual(new Set(['signed']))
    expect(fetches).toBe(1)
  })

  it('are no longer used after the hour, if the issuer has taken them back', async () => {
    await outcome(token(first))
    published = [second]
    time += FRESH_MS
    expect(await outcome(token(first))).toBe('unknown_key')
  })
})

describe('a key that is not known', () => {
  it('makes the keys be fetched again, once a minute at most', async () => {
    await outcome(token(first))
    published = [first, second]
    expect(await outcome(token(second))).toBe('signed')
    expect(fetches).toBe(2)
    for (const one of [stranger, stranger]) expect(await outcome(token(one))).toBe('unknown_key')
    time += UNKNOWN_KEY_MS - 1
    expect(await outcome(token(stranger))).toBe('unknown_key')
    expect(fetches).toBe(2)
    time += 1
    expect(await outcome(token(stranger))).toBe('unknown_key')
    expect(fetches).toBe(3)
  })

  it('is fetched once for all who name it', async () => {
    await outcome(token(first))
    published = [second]
    const all = await Promise.all(Array.from({ length: 50 }, () => outcome(token(second))))
    expect(new Set(all)).toEqual(new Set(['signed']))
    expect(fetches).toBe(2)
  })

  it('leaves the known keys alone while the issuer is away', async () => {
    await outcome(token(first))
    isAway = true
    expect(await outcome(token(second))).toBe('unknown_key')
    expect(await outcome(token(first))).toBe('signed')
  })
})

describe('a signature', () => {
  it('by another key under a known name is refused, and nothing is fetched for it', async () => {
    await outcome(token(first))
    expect(await outcome(token(stranger, 'a'))).toBe('signature')
    expect(fetches).toBe(1)
  })

  it('without the name of a key is held against the only one', async () => {
    expect(await outcome(nameless(first))).toBe('signed')
    expect(await outcome(nameless(stranger))).toBe('signature')
    published = [first, second]
    time += FRESH_MS
    expect(await outcome(nameless(first))).toBe('unknown_key')
  })

  it('without the name of a key counts once the only key was replaced', async () => {
    await outcome(nameless(first))
    published = [second]
    expect(await outcome(nameless(second))).toBe('signed')
    expect(await outcome(nameless(first))).toBe('signature')
  })
})

describe('an issuer that is away', () => {
  it('has no keys if it never answered, and is asked again after a pause', async () => {
    isAway = true
    expect(await outcome(token(first))).toBe('keys_unavailable')
    expect(await outcome(token(first))).toBe('keys_unavailable')
    expect(fetches).toBe(1)
    isAway = false
    time += PAUSE_MS
    expect(await outcome(token(first))).toBe('signed')
    expect(failures).toEqual(['away'])
  })

  it('keeps its keys for an hour beyond the hour, and then has none', async () => {
    await outcome(token(first))
    isAway = true
    time += FRESH_MS
    expect(await outcome(token(first))).toBe('signed')
    time += STALE_MS - 1
    expect(await outcome(token(first))).toBe('signed')
    time += 1
    expect(await outcome(token(first))).toBe('keys_unavailable')
    isAway = false
    time += PAUSE_MS
    expect(await outcome(token(first))).toBe('signed')
  })

  it('is not waited for again while its keys go on', async () => {
    await outcome(token(first))
    isAway = true
    time += FRESH_MS
    expect(await outcome(token(first))).toBe('signed')
    time += PAUSE_MS
    const { promise, resolve } = Promise.withResolvers<void>()
    hold = promise
    // The answer to this fetch is still to come.
    expect(await outcome(token(first))).toBe('signed')
    expect(fetches).toBe(3)
    resolve()
  })

  it('says why only to the audit', async () => {
    isAway = true
    const text = token(first)
    const refused = issuer.requireSignature(text, readForeignJws(text))
    await expect(refused).rejects.toMatchObject({ detail: 'away', message: 'keys_unavailable' })
  })
})

describe('keys in the configuration', () => {
  it('are all there are', async () => {
    const fixed = fixedIssuer(keysOf([first]))
    expect(await outcome(token(first), fixed)).toBe('signed')
    expect(await outcome(token(second), fixed)).toBe('unknown_key')
    expect(await outcome(token(second, 'a'), fixed)).toBe('signature')
  })
})
