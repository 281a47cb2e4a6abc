import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  ENTRY,
  identityFaults,
  identityOptions,
  loadIdentities,
  PLATFORM,
} from '../../test/support/identity-config.ts'
import { loadConfig } from './load.ts'

const { publicKey } = generateKeyPairSync('ed25519')
const JWK = { ...publicKey.export({ format: 'jwk' }), kid: 'one' }

describe('the issuer of this server', () => {
  const own = (over: object) =>
    identityFaults({
      identities: [{ ...ENTRY, ...over }],
      previous_issuers: ['https://old.example.com'],
    })
  test.each([
    'https://mayfly.example.com',
    'https://mayfly.example.com/',
    'https://MAYFLY.example.com',
    'https://mayfly.example.com/backends/jwt',
    'https://old.example.com',
    'https://old.example.com/backends/a',
  ])('is never trusted: %s', async (issuer) => {
    expect(await own({ issuer })).toEqual(['identities.0.issuer: is an issuer of this server itself'])
  })
  test.each(['https://mayfly\\.example\\.com/b.+/[a-c].*', 'https://(mayfly|old)\\.example\\.com'])(
    'is never trusted: %s',
    async (issuer_pattern) => {
      expect(await own({ issuer: undefined, issuer_pattern })).toEqual([
        'identities.0.issuer_pattern: is an issuer of this server itself',
      ])
    },
  )
  test('is not another one on the same host', async () => {
    expect(await own({ issuer: 'https://mayfly.example.com/realms/ci' })).toEqual([])
    expect(
      await own({ issuer: undefined, issuer_pattern: 'https://mayfly\\.example\\.com/realms/.+' }),
    ).toEqual([])
  })
  test('is no platform either', async () => {
    expect(
      await identityFaults({ platforms: [{ ...PLATFORM, issuer: 'https://mayfly.example.com' }] }),
    ).toEqual(['platforms.0.issuer: is an issuer of this server itself'])
  })
})

describe('several entries', () => {
  const two = (over: object) =>
    identityFaults({ identities: [ENTRY, { ...ENTRY, name: 'other', agent: 'other-{run_id}', ...over }] })

  test('may have the same issuer', async () => {
    expect(await two({})).toEqual([])
  })
  test.each([
    ['the same name', { name: 'CI' }, '"CI" is already the name of another identity'],
    ['the same template', { agent: 'CI-{run_id}' }, 'agent: is already given by the entry "ci"'],
  ])('never have %s', async (_, over, message) => {
    expect((await two(over)).join('\n')).toContain(
      `identities.1.${message.includes('name of') ? 'name: ' : ''}${message}`,
    )
  })
  test('never have the same fixed name', async () => {
    const identities = [
      { ...ENTRY, agent: 'deployer' },
      { ...ENTRY, name: 'other', agent: 'Deployer' },
    ]
    expect(await identityFaults({ identities })).toEqual([
      'identities.1.agent: is already given by the entry "ci"',
    ])
  })
  test('have their issuer in one list alone', async () => {
    const faults = [
      'platforms.0.issuer: is also the issuer of the identity "ci"; keep it in one of the two lists',
    ]
    const platforms = [{ ...PLATFORM, issuer: ENTRY.issuer }]
    expect(await identityFaults({ identities: [ENTRY], platforms })).toEqual(faults)
    const { issuer: _, ...rest } = ENTRY
    const identities = [{ ...rest, issuer_pattern: 'https://token\\.actions\\.githubusercontent\\.com' }]
    expect(await identityFaults({ identities, platforms })).toEqual(faults)
  })
})

describe('platforms', () => {
  test('are read with their scopes', async () => {
    const scopes = [{ claim: 'groups', value: 'writers', scopes: ['github:*:write'] }]
    const { platforms } = await loadIdentities({
      platforms: [{ ...PLATFORM, scopes, jwks: { keys: [JWK] } }],
    })
    expect(platforms).toEqual([
      {
        ...PLATFORM,
        scopes,
        keys: { jwks: { keys: [JWK] }, jwksUri: undefined, ca: undefined, local: false },
      },
    ])
  })

  test.each([
    ['an issuer over http', { issuer: 'http://agents.example' }, 'issuer: must start with https://'],
    ['no audience', { audience: undefined }, 'requires audience'],
    ['a name that is none', { name: 'a/b' }, 'name: "a/b" is not a name'],
    ['a pattern of issuers', { issuer_pattern: 'https://.+' }, 'is not a setting'],
    [
      'an admin scope',
      { scopes: [{ claim: 'a', value: 'b', scopes: ['admin:*'] }] },
      'scopes.0.scopes.0: "admin:*"',
    ],
    [
      'a mapping that gives nothing',
      { scopes: [{ claim: 'a', value: 'b', scopes: [] }] },
      'must not have fewer',
    ],
    [
      'a mapping twice',
      { scopes: [1, 2].map(() => ({ claim: 'a', value: 'b', scopes: ['c'] })) },
      'scopes.1: "b" is already in the list',
    ],
  ])('with %s are refused', async (_, over, message) => {
    expect((await identityFaults({ platforms: [{ ...PLATFORM, ...over }] })).join('\n')).toContain(message)
  })

  test('with the same issuer have different audiences', async () => {
    const other = { ...PLATFORM, name: 'other' }
    expect(await identityFaults({ platforms: [PLATFORM, other] })).toEqual([
      'platforms.1.issuer: is already the issuer of another platform with this audience',
    ])
    expect(await identityFaults({ platforms: [PLATFORM, { ...other, audience: 'b' }] })).toEqual([])
  })
})

test('a file with authorities that is none is a fault, which never shows it', async () => {
  const identities = [{ ...ENTRY, ca_file: '/ca.pem' }]
  const platforms = [{ ...PLATFORM, ca_file: '/none.pem' }]
  const faults = await identityFaults({ identities, platforms }, { '/ca.pem': 'a-secret-by-mistake' })
  expect(faults[0]).toBe('identities.0.ca_file: the file holds no certificates in PEM')
  expect(faults[1]).toContain('platforms.0.ca_file: ')
  expect(faults.join()).not.toContain('a-secret-by-mistake')
})

test('they stand in the file alone', async () => {
  const { argv, ...rest } = identityOptions({})
  await expect(loadConfig({ ...rest, argv, env: { MAYFLY_IDENTITIES: '[]' } })).rejects.toThrow(
    'is not an environment variable of the server',
  )
})
