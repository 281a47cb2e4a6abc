import type { DatabaseUse, HttpUse, Rule } from '../../src/domain/use.ts'
import type { Asked, Header } from '../../src/proxy/rules/asked.ts'
import type { Held, Live } from '../../src/proxy/types.ts'

/** Credentials of a run, and requests to their authorities, for tests of the rules. */

export interface HeldSpec {
  readonly name: string
  readonly uses: readonly (HttpUse | DatabaseUse)[]
  /** By field: the placeholder, and the secret. */
  readonly fields: Readonly<Record<string, readonly [placeholder: string, secret: string]>>
  readonly open?: Readonly<Record<string, string>>
}

export function heldOf({ name, uses, fields, open = {} }: HeldSpec): Held & { readonly live: Live } {
  const entries = Object.entries(fields)
  const live: Live = {
    state: 'live',
    credentialId: `cred_${name}`,
    secrets: new Map(entries.map(([field, [, secret]]) => [field, secret])),
    open: new Map(Object.entries(open)),
    expiresAt: 0,
  }
  return {
    ...{ name, backend: name, type: name, uses, live },
    placeholders: new Map(entries.map(([field, [placeholder]]) => [field, placeholder])),
    now: () => live,
  }
}

export const every = (path: string, more: Partial<Rule> = {}): Rule => ({ methods: ['*'], path, ...more })

export function useOf(name: string, origin: string, more: Partial<HttpUse> = {}): HttpUse {
  return {
    ...{ protocol: 'http', name, origin, local: false },
    places: [{ in: 'header', name: 'authorization' }],
    ...{ allow: [every('/**')], deny: [], ...more },
  }
}

/** A request in which `Host` is right unless it is named. */
export function ask(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>> | readonly Header[] = {},
  more: Partial<Asked> = {},
): Asked {
  const [, scheme = 'https', authority = '', target = '/'] = /^(https?):\/\/([^/]+)(.*)$/s.exec(url) ?? []
  const given = Array.isArray(headers) ? (headers as readonly Header[]) : Object.entries(headers)
  const hasHost = given.some(([name]) => name.toLowerCase() === 'host')
  const port = scheme === 'https' ? 443 : 80
  return {
    authority: /:\d+$/.test(authority) ? authority : `${authority}:${port}`,
    scheme: scheme === 'http' ? 'http' : 'https',
    ...{ method, target },
    headers: hasHost || more.http2 !== undefined ? given : [['Host', authority], ...given],
    ...more,
  }
}

export const GITHUB = 'ghp_mfPLACEHOLDER0000000000000000000001'
export const GITHUB_SECRET = 'ghp_REALREALREALREALREALREALREALREAL0001'
export const OTHER_GITHUB = 'ghp_mfPLACEHOLDER0000000000000000000002'
export const OTHER_SECRET = 'ghp_SECONDSECONDSECOND'
export const MODEL = 'sk-ant-api03-mfPLACEHOLDER00000000000003'
export const BOT = 'mfPLACEHOLDER00000000000000000000000004'
export const BOT_SECRET = '123456:REAL-real_REAL-real_REAL'
export const KEY_ID = 'AKIAMFPLACEHOLDER005'
export const SECRET_KEY = 'mfPLACEHOLDER0000000000000000000000006xx'
export const SESSION = 'mfPLACEHOLDER00000000000000000000000007xx'
export const REGISTRY = 'npm_mfPLACEHOLDER000000000000000000008'
export const CLIENT = 'mfPLACEHOLDER00000000000000000000000009'
export const CLIENT_SECRET = 'real&client="secret"/+ é'
export const DATABASE = 'mfPLACEHOLDER00000000000000000000000010'
export const VAULT = 'hvs.mfPLACEHOLDER000000000000000000011'

const githubUses: HttpUse[] = [
  useOf('api', 'https://api.github.example', {
    places: [{ in: 'header', name: 'Authorization' }, { in: 'basic' }],
    allow: [
      { methods: ['GET', 'PATCH'], path: '/repos/acme/shop/**' },
      { methods: ['POST'], path: '/repos/acme/shop/issues' },
      every('/public/*'),
      every('/user/**'),
      { methods: ['POST'], path: '/graphql', named: true },
    ],
    deny: [every('/graphql'), every('/user/*/tokens'), every('/repos/acme/shop/keys/**', { named: true })],
  }),
  useOf('git', 'https://github.example', {
    places: [{ in: 'basic' }],
    allow: [every('/acme/shop.git/**')],
  }),
]

export const WORLD = [
  heldOf({ name: 'github', uses: githubUses, fields: { '': [GITHUB, GITHUB_SECRET] } }),
  heldOf({
    name: 'github#2',
    uses: githubUses,
    fields: { '': [OTHER_GITHUB, OTHER_SECRET], token: [OTHER_GITHUB, OTHER_SECRET] },
  }),
  heldOf({
    name: 'model',
    uses: [
      useOf('api', 'https://model.example', {
        places: [
          { in: 'header', name: 'x-api-key' },
          { in: 'query', name: 'key' },
        ],
        allow: [{ methods: ['POST', 'GET'], path: '/v1/**' }],
        deny: [every('/v1/organization/**')],
      }),
    ],
    fields: { '': [MODEL, 'sk-ant-api03-REALREALREALREAL/+&'] },
  }),
  heldOf({
    name: 'bot',
    uses: [useOf('api', 'https://bot.example', { places: [{ in: 'path' }], allow: [every('/bot*/*')] })],
    fields: { token: [BOT, BOT_SECRET], '': [BOT, BOT_SECRET] },
  }),
  heldOf({
    name: 'aws',
    uses: [
      useOf('aws', 'https://*.aws.example', {
        places: [
          ...[{ in: 'sigv4', field: 'secret', keyId: 'id', token: 'session', deny: ['sts', 'iam'] } as const],
        ],
        allow: [every('/**', { slashes: true })],
      }),
    ],
    fields: { id: [KEY_ID, 'AKIAREAL'], secret: [SECRET_KEY, 'REALKEY'], session: [SESSION, 'REALSESSION'] },
  }),
  heldOf({
    name: 'npm',
    uses: [
      useOf('registry', 'https://registry.example', {
        allow: [{ methods: ['GET', 'PUT'], path: '/@acme%2F*', slashes: true }, every('/-/**')],
        deny: [every('/-/npm/v1/tokens/**')],
      }),
    ],
    fields: { '': [REGISTRY, 'npm_REALREALREAL'] },
  }),
  heldOf({
    name: 'oauth',
    uses: [
      useOf('token', 'https://login.example', {
        places: [{ in: 'body', name: 'client_secret', maxBytes: 4096 }, { in: 'basic' }],
        allow: [{ methods: ['POST'], path: '/token' }],
      }),
    ],
    fields: { '': [CLIENT, CLIENT_SECRET] },
    open: { username: 'renewed-user' },
  }),
  heldOf({
    name: 'vault',
    uses: [
      useOf('api', 'http://127.0.0.1:8200', {
        local: true,
        places: [{ in: 'header', name: 'X-Vault-Token' }],
      }),
      useOf('far', 'http://vault.example', { places: [{ in: 'header', name: 'X-Vault-Token' }] }),
    ],
    fields: { '': [VAULT, 'hvs.REALREALREAL'] },
  }),
  heldOf({
    name: 'orders',
    uses: [
      { protocol: 'postgres', name: 'db', host: 'db.example', port: 5432, local: false, tls: 'require' },
    ],
    fields: { password: [DATABASE, 'pg-REAL'] },
  }),
] as const

export function liveOf(held: Held): Live {
  const live = held.now()
  if (live.state !== 'live') throw new Error('not live')
  return live
}
