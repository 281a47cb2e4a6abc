import { describe, expect, it } from 'vitest'
import type { IssuedCredential } from '../../client/wire.ts'
import { splitCredential } from '../../domain/secret-fields.ts'
import type { DatabaseUse, HttpUse, Use } from '../../domain/use.ts'
import type { Held, Site } from '../types.ts'
import { placeholderFor } from './placeholder.ts'
import { placeholderCredential, type ReachedDatabase } from './placeholder-credential.ts'

describe('a placeholder', () => {
  const samples: [type: string, field: string, form: RegExp, secret?: string][] = [
    ['aws', 'access_key_id', /^ASIA[A-Z2-7]{16}$/],
    ['aws', 'secret_access_key', /^\w{40}$/],
    ['github', '', /^ghs_[A-Za-z0-9]{36}$/],
    ['github', '', /^github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}$/, 'github_pat_11AAAAAAA'],
    ['anthropic', '', /^sk-ant-oat01-\w{95}$/],
    ['acme', '', /^sk-ant-api03-\w{95}$/, 'sk-ant-api03-secret'],
    ['openai', '', /^sk-svcacct-\w{64}$/, 'sk-svcacct-secret'],
    ['gitlab', '', /^glpat-\w{24}$/],
    ['vault', 'token', /^hvs\.\w{90}$/],
    ['acme', 'token', /^mayfly_\w{32}$/],
    ['postgres', 'password', /^\w{32}$/],
    ['elasticsearch', 'encoded_key', /^[A-Za-z0-9]{60}$/],
  ]

  it.each(samples)('of %s %j has the form %s', (type, field, form, secret) => {
    const made = Array.from({ length: 50 }, () => placeholderFor(type, field, secret))
    expect(made.filter((one) => !form.test(one))).toEqual([])
    expect(new Set(made).size).toBe(50)
    expect(made.filter((one) => !/^[\w.-]+$/.test(one))).toEqual([])
  })

  it('is a JWT where the secret is one, and says nothing of it', () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const secret = `${part({ alg: 'ES256', kid: 'k' })}.${part({ sub: 'system:serviceaccount' })}.c2ln`
    const [, claims = ''] = placeholderFor('kubernetes', 'token', secret).split('.')
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ iss: 'mayfly' })
  })

  it('takes nothing of a secret but what everybody knows', () => {
    expect(placeholderFor('acme', 'token', 'hunter2-hunter2')).not.toContain('hunter')
  })
})

describe('a credential of placeholders', () => {
  const http = (given: Partial<HttpUse>): HttpUse => ({
    ...{ protocol: 'http', name: 'api', origin: 'https://api.example.com', local: false },
    ...{ places: [{ in: 'header', name: 'authorization' }], allow: [], deny: [] },
    ...given,
  })

  interface Asked {
    readonly uses?: readonly Use[]
    readonly url?: string
    readonly databases?: readonly ReachedDatabase[]
  }

  function make(issued: Partial<IssuedCredential>, { uses = [http({})], url, databases = [] }: Asked = {}) {
    const { secrets } = splitCredential(issued, uses)
    const placeholders = new Map([...secrets.keys()].map((field) => [field, `PH-${field}`]))
    const sites = uses.flatMap((use): Site[] =>
      use.protocol === 'http' && url !== undefined ? [{ held: {} as Held, use, url }] : [],
    )
    const base = { id: 'cred_x', backend: 'b', scopes: [], expires_at: '', created_at: '', ttl: '' }
    const made = placeholderCredential({ ...base, ...issued } as IssuedCredential, {
      ...{ uses, placeholders, sites, databases },
      certificate: '-----BEGIN CERTIFICATE-----\nMAYFLY\n-----END CERTIFICATE-----\n',
    })
    return { token: made.token, fields: made.fields ?? {}, text: JSON.stringify(made) }
  }

  it('has one placeholder for one secret', () => {
    expect(make({ token: 'ghs_real' })).toMatchObject({ token: 'PH-', fields: {} })
  })

  it('has the fields as its token, where the real one has', () => {
    const fields = {
      access_key_id: 'AKIA',
      secret_access_key: 'real',
      session_token: 'real',
      region: 'eu-west-1',
    }
    const place = {
      in: 'sigv4',
      field: 'secret_access_key',
      keyId: 'access_key_id',
      token: 'session_token',
    } as const
    const uses = [http({ places: [{ ...place, deny: [] }] })]
    const wanted = {
      access_key_id: 'PH-access_key_id',
      ...{
        secret_access_key: 'PH-secret_access_key',
        session_token: 'PH-session_token',
        region: 'eu-west-1',
      },
    }
    const made = make({ token: JSON.stringify(fields), fields }, { uses })
    expect(made.fields).toEqual(wanted)
    expect(JSON.parse(made.token)).toEqual(wanted)
  })

  it('leads to the proxy wherever the upstream was named, below its path, too', () => {
    const fields = { token: 'real', url: 'https://api.example.com/gitea', address: 'https://api.example.com' }
    expect(make({ token: 'real', fields }, { url: 'http://127.0.0.1:1' }).fields).toEqual({
      ...{ token: 'PH-token', url: 'http://127.0.0.1:1/gitea', address: 'http://127.0.0.1:1' },
    })
  })

  it.each([
    ['a field that nobody knows', { webhook: 'https://hooks.example.com/services/real' }],
    ['a URL with a query', { url: 'https://api.example.com/?key=real' }],
    ['a URL with a user', { url: 'https://real@api.example.com/' }],
    ['a URL of a webhook', { url: 'https://hooks.example.com/services/real' }],
    ['an open name that a use puts into a request', { username: 'real' }],
    ['a private key', { ca: '-----BEGIN PRIVATE KEY-----\nreal\n-----END PRIVATE KEY-----' }],
    [
      'two PEM blocks',
      {
        ca: '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nreal\n-----END PRIVATE KEY-----',
      },
    ],
    ['a kubeconfig without a token', { kubeconfig: '{"users":[{"user":{"client-key-data":"real"}}]}' }],
    ['a configuration of docker that is none', { docker_config: 'real' }],
    ['a login of docker that is in no field', { docker_config: '{"auths":{"r":{"auth":"dTpyZWFs"}}}' }],
  ])('never shows %s', (_, fields) => {
    const uses = [http({ places: [{ in: 'query', name: 'u', field: 'username' }] })]
    expect(
      make({ token: JSON.stringify(fields), fields }, { uses, url: 'http://127.0.0.1:1' }).text,
    ).not.toMatch(/real|dTpyZWFs/)
  })

  const database: DatabaseUse = {
    ...{
      protocol: 'redis',
      name: 'redis',
      host: 'cache.example.com',
      port: 6380,
      local: false,
      tls: 'verify-full',
    },
  }

  it('makes the URL of a database again', () => {
    const [username, password] = ['mf_1', 'real/+']
    const url = `rediss://${username}:${encodeURIComponent(password)}@cache.example.com:6380/0`
    const fields = { username, password, host: 'cache.example.com', port: 6380, database: 0, url }
    const made = make(
      { token: JSON.stringify(fields), fields },
      { uses: [database], databases: [{ use: database, host: '127.0.0.1', port: 4001 }] },
    )
    expect(made.fields).toEqual({
      ...{ username, password: 'PH-password', host: '127.0.0.1', port: 4001, database: 0 },
      url: 'redis://mf_1:PH-password@127.0.0.1:4001/0',
    })
  })

  it('makes a kubeconfig again, which trusts the run', () => {
    const fields = {
      token: 'real',
      server: 'https://api.example.com',
      namespace: 'shop',
      kubeconfig: '{"real":1}',
    }
    const made = make({ token: JSON.stringify(fields), fields }, { url: 'https://127.0.0.1:2' })
    const config = JSON.parse(String(made.fields['kubeconfig']))
    expect(config.clusters[0].cluster.server).toBe('https://127.0.0.1:2')
    expect(
      Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64').toString(),
    ).toContain('MAYFLY')
    expect(config.users[0].user).toEqual({ token: 'PH-token' })
    expect(config.contexts[0].context.namespace).toBe('shop')
    expect(made.text).not.toContain('real')
  })

  it('makes the logins of docker again', () => {
    const auth = Buffer.from('cred_x:pw').toString('base64')
    const config = JSON.stringify({ auths: { 'r.example.com': { auth, registrytoken: 'jwt' } } })
    const fields = { username: 'cred_x', password: 'pw', token: 'jwt', docker_config: config }
    const made = make({ token: JSON.stringify(fields), fields })
    expect(JSON.parse(String(made.fields['docker_config']))).toEqual({
      auths: {
        'r.example.com': {
          auth: Buffer.from('cred_x:PH-password').toString('base64'),
          registrytoken: 'PH-token',
        },
      },
    })
  })
})
