import type { HttpUse, Rule } from '../../domain/use.ts'
import { ALL, AUTHORIZATION, httpUse, READING, rules } from '../uses.ts'
import type { Config } from './config.ts'

/**
 * Hosts of Google APIs (the `rootUrl` of their discovery documents) with what makes credentials there, over REST and gRPC. Those
 * that exist for that are missing: iam, iamcredentials, sts, secretmanager, apikeys, oslogin, container (which shows client keys).
 */
const HOSTS: Readonly<Record<string, readonly string[]>> = {
  storage: ['/', '/storage/v1/projects/*/hmacKeys/**', '/google.storage.v2.Storage/CreateHmacKey'],
  bigquery: [],
  pubsub: [],
  logging: [],
  monitoring: [],
  firestore: [],
  datastore: [],
  spanner: [],
  cloudresourcemanager: [],
  artifactregistry: [],
  cloudbuild: [],
  run: [],
  cloudfunctions: ['/*/projects/*/locations/*/functions:generateUploadUrl'],
  cloudtasks: [],
  cloudscheduler: [],
  cloudtrace: [],
  dns: [],
  translate: [],
  vision: [],
  aiplatform: [],
  // SSH keys of machines.
  compute: [
    '/compute/*/projects/*/zones/*/instances/*/setMetadata',
    '/compute/*/projects/*/setCommonInstanceMetadata',
  ],
  sqladmin: [
    ...['users', 'sslCerts', 'createEphemeral'].map((part) => `/*/projects/*/instances/*/${part}/**`),
    ...['users', 'sslCerts', 'createEphemeral'].map((part) => `/sql/*/projects/*/instances/*/${part}/**`),
    ...['', '/sql'].map((before) => `${before}/v1/projects/*/instances/*:generateEphemeralCert`),
  ],
}

/** OAuth scopes that are for some APIs only ("OAuth 2.0 Scopes for Google APIs"). */
const OF_SCOPE: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^cloud-platform(\.read-only)?$/, Object.keys(HOSTS)],
  [/^devstorage\./, ['storage']],
  [/^bigquery/, ['bigquery']],
  [/^pubsub$/, ['pubsub']],
  [/^logging\./, ['logging']],
  [/^monitoring/, ['monitoring']],
  [/^datastore$/, ['datastore', 'firestore']],
  [/^spanner\./, ['spanner']],
  [/^cloudplatformprojects/, ['cloudresourcemanager']],
  [/^compute/, ['compute']],
  [/^ndev\.clouddns/, ['dns']],
  [/^trace\./, ['cloudtrace']],
  [/^cloud-(translation|vision)$/, ['translate', 'vision']],
]
const READ_ONLY = /[._](read|readonly|read_only|read-only)$/

/** One use for each host, since Google has one for each API. */
export function usesOf(settings: Config, scopes: readonly string[]): readonly HttpUse[] {
  const { oauth_scopes: ours, endpoint, local } = settings
  const asked = [...new Set(scopes.flatMap((scope) => (scope === '*' ? ours : [scope])))]
  const methods = asked.every((scope) => READ_ONLY.test(scope)) ? READING : ALL
  const names = [...new Set(asked.flatMap((scope) => OF_SCOPE.find(([form]) => form.test(scope))?.[1] ?? []))]
  if (endpoint !== undefined) {
    const deny = [...names.flatMap(denied), ...rules(['*'], OF_ONE_HOST)]
    return names.length === 0 ? [] : httpUse('api', { base: endpoint, local }, { ...parts(methods), deny })
  }
  return names.flatMap((name) =>
    httpUse(
      name,
      { base: `https://${name}.googleapis.com`, local: false },
      { ...parts(methods), deny: denied(name) },
    ),
  )
}

/** One request there holds others, whose paths nobody sees ("Batch requests"). */
const BATCH = '/batch/**'

/** Where one address stands for all APIs, also those that only make credentials. */
const OF_ONE_HOST = [
  ...[
    '/v1/projects/*/serviceAccounts/**',
    '/*/projects/*/secrets/**',
    '/*/projects/*/locations/*/secrets/**',
  ],
  ...['/v1/token', '/token', '/oauth2/**', '/v2/projects/*/locations/*/keys/**'],
  ...['/google.iam.admin.v1.IAM/**', '/google.iam.credentials.v1.IAMCredentials/**'],
  ...['/google.cloud.secretmanager.v1.SecretManagerService/**', BATCH],
]

const parts = (methods: readonly string[]) => ({
  // "Query parameters": access_token.
  places: [AUTHORIZATION, { in: 'query', name: 'access_token' } as const],
  // Names of objects hold slashes.
  allow: rules(methods, ['/**'], { slashes: true }),
})

function denied(name: string): readonly Rule[] {
  const paths = HOSTS[name] ?? []
  return paths.length === 0 ? [] : rules(['POST', 'PUT', 'PATCH'], [...paths, BATCH])
}
