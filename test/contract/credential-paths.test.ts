import { readdirSync, readFileSync } from 'node:fs'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { kinds } from '../../src/backends/index.ts'
import type { Kind } from '../../src/backends/kind.ts'
import { USE_CASES, type UseCase } from '../support/uses/cases.ts'
import { permits } from '../support/uses/permits.ts'
import { RECIPE_CASES } from '../support/uses/recipe-cases.ts'
import vendors from '../support/uses/vendor-operations.json' with { type: 'json' }

/**
 * What a proxy lets through with a credential of each kind, by default: what programs do, and nothing that makes a credential.
 * `MAYFLY_VENDOR_DESCRIPTIONS` may name a directory with whole descriptions: `<kind>.json`, a list of `{method, path}`.
 */
const CASES: Readonly<Record<string, UseCase>> = { ...USE_CASES, ...RECIPE_CASES }
const OTHERS = process.env['MAYFLY_VENDOR_DESCRIPTIONS']

/** Kinds whose credentials are no logins over HTTP, or where only an administrator knows. */
const NONE = 'jwt ldap mqtt nats oauth2 oauth2-revocable rabbitmq ssh vault-secret x509 dockerhub tailscale'
const DATABASES = 'mysql postgres redis'

const kindOf = (type: string) => kinds.find((kind) => kind.type === type) as Kind

function usesOf(type: string, { config = {}, scopes }: UseCase) {
  const kind = kindOf(type)
  const [example] = (kind.config as { examples?: readonly object[] }).examples ?? []
  const whole = Value.Default(kind.config, { ...structuredClone(example), ...structuredClone(config) })
  return kind.uses?.(whole as never, scopes) ?? []
}

function urlOf(operation: string, { origin, params = {} }: UseCase): [method: string, url: string] {
  const [method = '', place = ''] = operation.split(' ')
  const path = place.replace(/\{([^}]+)\}/g, (_, name: string) => params[name] ?? 'x')
  return [method, path.startsWith('/') ? `${origin}${path}` : path]
}

test('each kind says where its credentials are used, or is known to have no such place', () => {
  const said = kinds.filter(({ uses }) => uses !== undefined).map(({ type }) => type)
  expect(said.sort()).toEqual([...Object.keys(CASES), ...DATABASES.split(' ')].sort())
  const silent = kinds.filter(({ uses }) => uses === undefined).map(({ type }) => type)
  expect(silent.sort()).toEqual(NONE.split(' ').sort())
})

describe.each(Object.entries(CASES))('with a credential of %s', (type, one) => {
  const uses = usesOf(type, one)

  test.each(one.ordinary)('a program may %s', (operation) => {
    expect(permits(uses, ...urlOf(operation, one))).toBe(true)
  })

  test.each(one.makes)('nobody may %s', (operation) => {
    expect(permits(uses, ...urlOf(operation, one))).toBe(false)
  })
})

/** `+` permitted, `-` refused. */
const NARROWED: readonly (readonly [type: string, scopes: string, operations: string])[] = [
  [
    'github',
    'acme/shop:contents:read',
    `+ GET /repos/acme/shop/issues
     - POST /repos/acme/shop/issues
     - GET /repos/acme/shop-2
     + POST https://github.com/acme/shop.git/git-upload-pack
     - POST https://github.com/acme/shop.git/git-receive-pack
     - POST https://uploads.github.com/repos/acme/shop/releases/1/assets`,
  ],
  [
    'github',
    'acme/shop:issues:write',
    `+ POST /repos/acme/shop/issues
     - POST https://github.com/acme/shop.git/git-upload-pack`,
  ],
  [
    'github',
    'acme/shop:contents:read acme/web:contents:write',
    `- POST /repos/acme/shop/merges
     + POST /repos/acme/web/merges`,
  ],
  [
    'github',
    'acme/shop:secrets:write',
    `+ PUT /repos/acme/shop/actions/secrets/DEPLOY
     - PUT /repos/acme/shop/dependabot/secrets/DEPLOY
     - POST /repos/acme/shop/keys`,
  ],
  [
    'gitlab',
    'acme/app:read_api',
    `+ GET /api/v4/projects/acme%2Fapp/issues
     - POST /api/v4/projects/acme%2Fapp/issues
     - POST /acme/app.git/git-upload-pack`,
  ],
  [
    'gitlab',
    'acme/app:read_repository',
    `+ POST /acme/app.git/git-upload-pack
     - POST /acme/app.git/git-receive-pack
     - GET /api/v4/projects/acme%2Fapp/issues
     + GET /api/v4/projects/acme%2Fapp/repository/files/a%2Fb/raw
     - GET /api/v4/projects/acme%2Fother/repository/tree`,
  ],
  [
    'gitea',
    'issue:read',
    '+ GET /api/v1/repos/a/b/issues; - POST /api/v1/repos/a/b/issues; - GET /a/b/info/refs',
  ],
  ['kubernetes', 'shop:view', '+ GET /api/v1/namespaces/shop/pods; - POST /api/v1/namespaces/shop/pods'],
  [
    'kubernetes',
    'shop:admin',
    `+ GET /api/v1/namespaces/shop
     + DELETE /api/v1/namespaces/shop/pods/web
     - DELETE /api/v1/namespaces/shop
     - DELETE /api/v1/namespaces/shop/
     - PATCH /api/v1/namespaces/Shop
     - PUT /api/v1/namespaces/shop/finalize
     - PATCH /api/v1/namespaces/shop/status`,
  ],
  ['aws', 's3/bucket:read', '+ GET /key; - PUT /key; - POST /'],
  [
    'gcp',
    'devstorage.read_only',
    '+ GET https://storage.googleapis.com/storage/v1/b; - POST https://storage.googleapis.com/storage/v1/b; - GET https://bigquery.googleapis.com/x',
  ],
  ['azure', 'graph.microsoft.com', '- GET /subscriptions; + GET https://graph.microsoft.com/v1.0/users'],
  [
    'registry',
    'base:pull',
    '+ GET /v2/base/manifests/1; - PUT /v2/base/manifests/1; - GET /v2/team/app/manifests/1',
  ],
  ['grafana', 'viewer', '+ GET /api/search; + POST /api/ds/query; - POST /api/dashboards/db'],
  ['grafana', 'editor', '+ POST /api/dashboards/db; - POST /api/datasources'],
  ['doppler', 'backend/prd:read', '+ GET /v3/configs/config/secrets; - POST /v3/configs/config/secrets'],
  ['elasticsearch', 'logs-*:ingest', '+ POST /logs-1/_doc; - GET /logs-1/_search; - DELETE /logs-1'],
  ['elasticsearch', 'shop:read', '+ POST /shop/_search; - POST /shop/_doc; - GET /logs-1/_search'],
  [
    'cloudflare',
    'z1:dns_read',
    '+ GET /client/v4/zones/z1/dns_records; - POST /client/v4/zones/z1/dns_records',
  ],
]

test.each(NARROWED)(
  'with a credential of %s, the scopes %s narrow what is permitted',
  (type, scopes, operations) => {
    const one = { ...(CASES[type] as UseCase), scopes: scopes.split(' ') }
    const uses = usesOf(type, one)
    for (const line of operations.split(/[;\n]/).map((text) => text.trim())) {
      const isPermitted = permits(uses, ...urlOf(line.slice(2), one))
      expect(`${isPermitted ? '+' : '-'} ${line.slice(2)}`).toBe(line)
    }
  },
)

test('no scope permits nothing', () => {
  for (const [type, one] of Object.entries(CASES)) {
    const uses = usesOf(type, { ...one, scopes: [] })
    // What a program asks of itself is all that may be left.
    const urls = one.ordinary
      .filter((operation) => !/^(GET|HEAD) /.test(operation))
      .map((operation) => urlOf(operation, one))
    const left = urls.filter((url) => permits(uses, ...url)).map((url) => url.join(' '))
    expect([type, left]).toEqual([type, []])
  }
})

/** With an operation each that hands out what outlives the request (models of the AWS SDKs). */
const HANDS_OUT = {
  sts: 'AssumeRole',
  iam: 'CreateAccessKey',
  sso: 'CreateAccountAssignment',
  awsssoportal: 'GetRoleCredentials',
  'sso-oauth': 'CreateToken',
  signin: 'CreateOAuth2Token',
  'cognito-identity': 'GetCredentialsForIdentity',
  'cognito-idp': 'AdminInitiateAuth',
  s3express: 'CreateSession',
  rolesanywhere: 'CreateSession',
  'eks-auth': 'AssumeRoleForPodIdentity',
  secretsmanager: 'GetSecretValue',
  ssm: 'GetParameter',
  ecr: 'GetAuthorizationToken',
  'ecr-public': 'GetAuthorizationToken',
  codeartifact: 'GetAuthorizationToken',
  codepipeline: 'GetJobDetails',
  lakeformation: 'GetTemporaryGlueTableCredentials',
  redshift: 'GetClusterCredentials',
  'redshift-serverless': 'GetCredentials',
  datazone: 'GetEnvironmentCredentials',
  deadline: 'AssumeQueueRoleForUser',
  gamelift: 'RequestUploadCredentials',
  connect: 'GetFederationToken',
  lightsail: 'GetInstanceAccessDetails',
  acm: 'ExportCertificate',
  iot: 'CreateKeysAndCertificate',
}

test('services of AWS that hand out credentials are refused', () => {
  const places = usesOf('aws', CASES['aws'] as UseCase).flatMap((use) =>
    use.protocol === 'http' ? use.places : [],
  )
  const [place] = places
  expect(places).toHaveLength(1)
  expect(place?.in === 'sigv4' ? place.deny : []).toEqual(expect.arrayContaining(Object.keys(HANDS_OUT)))
  expect(place?.in === 'sigv4' && place.allow).toBe(undefined)
})

test('with scopes of buckets only, no service but S3 is permitted', () => {
  const [use] = usesOf('aws', { ...(CASES['aws'] as UseCase), scopes: ['s3/bucket:write'] })
  expect(use).toMatchObject({ places: [{ in: 'sigv4', allow: ['s3'] }] })
})

test('another S3 gets nothing at its root, where it answers STS and IAM', () => {
  const one = {
    ...(CASES['aws'] as UseCase),
    origin: 'https://ceph.example.com',
    config: { role_arn: 'arn:aws:iam:::role/x', endpoint: 'https://ceph.example.com/' },
  }
  const uses = usesOf('aws', one)
  const may = (operation: string) => permits(uses, ...urlOf(operation, one))
  expect(['GET /', 'PUT /bucket/key', 'POST /bucket'].map(may)).toEqual([true, true, true])
  expect(['POST /', 'POST //', 'POST /;x', 'GET /admin/user', 'GET /minio/admin/v3/info'].map(may)).toEqual([
    ...[false, false, false, false, false],
  ])
})

/** An operation that makes a token, key, secret or credential: it changes something, and its path says so, or it is read so. */
const MAKES =
  /(^|[/_.-])(access_?|api_?|auth|authentication-|registration-|remove-|deploy_?|service_?|secret_?)?(tokens?|secrets?|creds|credentials?|keys?|passwords?|logins?|sessions?|service_?accounts|api_key|oauth2?|jitconfig|certificatesigningrequests)(?=$|[/_.:-])/i
const CHANGES = /^(POST|PUT|PATCH) /
const READ = /\/(creds|static-creds|sts|export)\/|^GET \S*registration-token/

const makes = (operation: string, { harmless }: UseCase) =>
  (READ.test(operation) || (CHANGES.test(operation) && MAKES.test(operation.split(' ')[1] ?? ''))) &&
  harmless?.test(operation) !== true

describe('of the descriptions of the vendors, the operations that make credentials are refused:', () => {
  const known = Object.entries(vendors as Record<string, string[]>).flatMap(([name, operations]) => {
    const type = name === 'forgejo' ? 'gitea' : name
    const one = CASES[type]
    return one === undefined || operations.length === 0 ? [] : [[name, type, one, operations] as const]
  })
  test.each(known)('%s', (_, type, one, operations) => {
    const uses = usesOf(type, one)
    const making = operations.filter((operation) => makes(operation, one))
    expect(making).not.toEqual([])
    expect(making.filter((operation) => permits(uses, ...urlOf(operation, one)))).toEqual([])
  })
})

describe.runIf(OTHERS !== undefined)('of whole descriptions:', () => {
  const names = OTHERS === undefined ? [] : readdirSync(OTHERS).filter((name) => name.endsWith('.json'))
  const known = names.map((name) => name.replace('.json', '')).filter((name) => name in CASES)
  test.each(known)('%s', (type) => {
    const one = CASES[type] as UseCase
    const uses = usesOf(type, one)
    const read = JSON.parse(readFileSync(`${OTHERS}/${type}.json`, 'utf8')) as {
      method: string
      path: string
    }[]
    const all = read.map(({ method, path }) => `${method} ${path}`)
    const making = all.filter((operation) => makes(operation, one))
    const passed = all.filter((operation) => permits(uses, ...urlOf(operation, one)))
    console.log(
      `${type}: ${all.length} operations, ${passed.length} permitted, ${making.length} make credentials`,
    )
    expect(making.filter((operation) => passed.includes(operation))).toEqual([])
  })
})
