import { describe, expect, test } from 'vitest'
import type { Fault } from '../domain/fault.ts'
import { ConfigError } from '../domain/fault.ts'
import { loadConfig } from './load.ts'
import { showSettings } from './show-settings.ts'

const SECRET = 'the-secret-of-the-client'
const GROUPS = [{ group: 'admins', scopes: ['admin:*'], backend_scopes: ['orders'] }]
const ENTRY = {
  name: 'Example SSO',
  issuer: 'https://login.example.com',
  client_id: 'mayfly',
  client_secret_file: '/secret',
  groups: GROUPS,
}

const options = (sso: unknown, files: Record<string, string> = { '/secret': `${SECRET}\n` }) => ({
  argv: { config: 'mayfly.yaml' },
  env: {},
  readFile: async (path: string) => {
    if (path === 'mayfly.yaml') return Buffer.from(JSON.stringify({ sso }))
    const text = files[path]
    if (text === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' })
    return Buffer.from(text)
  },
})

async function faultsOf(sso: unknown): Promise<readonly Fault[]> {
  try {
    await loadConfig(options(sso))
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

test('reads an entry with its secret and its defaults', async () => {
  const { config } = await loadConfig(options([ENTRY]))
  const [entry] = config.sso
  expect(entry).toMatchObject({
    name: 'Example SSO',
    issuer: 'https://login.example.com',
    clientId: 'mayfly',
    local: false,
    ca: undefined,
    scopes: ['openid', 'profile', 'email'],
    groups: [{ group: 'admins', scopes: ['admin:*'], backendScopes: ['orders'] }],
  })
  expect(entry?.clientSecret.reveal()).toBe(SECRET)
})

test('is shown with its origin and without the secret', async () => {
  const shown = (await showSettings(options([ENTRY]))).find(({ name }) => name === 'sso')
  expect(shown).toMatchObject({ value: JSON.stringify([ENTRY]), origin: 'mayfly.yaml:1:8', canReload: true })
  expect(shown?.value).not.toContain(SECRET)
})

describe('refuses, with the place', () => {
  const with_ = (more: object) => [{ ...ENTRY, ...more }]
  test.each<[string, unknown, string]>([
    ['a name with a line break', with_({ name: 'a\nb' }), 'sso.0.name'],
    ['a name with a space last', with_({ name: 'a ' }), 'sso.0.name'],
    [
      'a name twice, whatever its case',
      [ENTRY, { ...ENTRY, name: 'EXAMPLE sso', issuer: 'https://b.test' }],
      'sso.1.name',
    ],
    ['an issuer twice', [ENTRY, { ...ENTRY, name: 'b' }], 'sso.1.issuer'],
    ['an issuer without TLS', with_({ issuer: 'http://login.example.com' }), 'sso.0.issuer'],
    ['an issuer on this machine', with_({ issuer: 'https://localhost' }), 'sso.0.issuer'],
    ['an issuer with a query', with_({ issuer: 'https://a.test/?x' }), 'sso.0.issuer'],
    ['an issuer with a fragment', with_({ issuer: 'https://a.test/#' }), 'sso.0.issuer'],
    ['an issuer with a login', with_({ issuer: 'https://u:p@a.test' }), 'sso.0.issuer'],
    ['another protocol', with_({ issuer: 'ftp://a.test', local: true }), 'sso.0.issuer'],
    [
      'the address of the document',
      with_({ issuer: 'https://a.test/.well-known/openid-configuration' }),
      'sso.0.issuer',
    ],
    ['scopes without openid', with_({ scopes: ['email'] }), 'sso.0.scopes'],
    ['a scope with a space', with_({ scopes: ['openid', 'a b'] }), 'sso.0.scopes.1'],
    [
      'a scope of a backend among the admin scopes',
      with_({ groups: [{ group: 'a', scopes: ['orders'] }] }),
      'sso.0.groups.0.scopes.0',
    ],
    [
      'an admin scope among those of backends',
      with_({ groups: [{ group: 'a', scopes: [], backend_scopes: ['admin:*'] }] }),
      'sso.0.groups.0.backend_scopes.0',
    ],
    [
      'what is no scope',
      with_({ groups: [{ group: 'a', scopes: ['admin:**'] }] }),
      'sso.0.groups.0.scopes.0',
    ],
    ['a group that gives nothing', with_({ groups: [{ group: 'a', scopes: [] }] }), 'sso.0.groups.0'],
    ['a group twice', with_({ groups: [...GROUPS, ...GROUPS] }), 'sso.0.groups.1.group'],
    ['no groups', with_({ groups: [] }), 'sso'],
    ['an unknown field', with_({ claim: 'roles' }), 'sso'],
    ['the secret itself', with_({ client_secret: 'x' }), 'sso'],
    ['a secret file that is not there', with_({ client_secret_file: '/none' }), 'sso.0.client_secret_file'],
    ['certificates that are none', with_({ ca_file: '/secret' }), 'sso.0.ca_file'],
  ])('%s', async (_, sso, place) => {
    const faults = await faultsOf(sso)
    expect(faults.map(({ message }) => message).join('\n')).toContain(place)
    expect(JSON.stringify(faults)).not.toContain(SECRET)
  })
})

test('groups whose names differ only by case are two groups', async () => {
  const groups = [...GROUPS, { group: 'Admins', scopes: ['admin:audit:read'] }]
  expect(await faultsOf([{ ...ENTRY, groups }])).toEqual([])
})

test('http and loopback are for a provider that is local', async () => {
  expect(await faultsOf([{ ...ENTRY, issuer: 'http://127.0.0.1:9000', local: true }])).toEqual([])
})
