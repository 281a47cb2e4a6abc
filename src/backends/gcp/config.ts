import { createPrivateKey, type KeyObject } from 'node:crypto'
import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { requireConfig, requireHttps } from '../fields.ts'

const example = {
  service_account: 'reports@my-project.iam.gserviceaccount.com',
  provider: 'projects/123456789012/locations/global/workloadIdentityPools/mayfly/providers/mayfly',
}

export const config = Field.configOf(example, {
  service_account: Field.upstream('E-mail address of the service account whose tokens agents get.', {
    maxLength: 254,
    pattern: '^[a-z0-9][a-z0-9._-]*@[a-z0-9.-]+$',
  }),
  key: Type.Optional(
    Field.secret("JSON key file of Mayfly's own service account; leave out for federation.", {
      maxLength: 16_384,
    }),
  ),
  provider: Type.Optional(
    Field.upstream('Workload identity provider that trusts Mayfly: projects/NUMBER/locations/global/…', {
      pattern:
        '^projects/\\d+/locations/global/workloadIdentityPools/[a-z0-9-]{4,32}/providers/[a-z0-9-]{4,32}$',
    }),
  ),
  oauth_scopes: Field.list(
    Field.text('OAuth scope.', { pattern: '^[a-z][a-z0-9._/-]{0,127}$' }),
    32,
    'What the scope * stands for, without https://www.googleapis.com/auth/. IAM limits it further.',
    { default: ['cloud-platform'] },
  ),
  endpoint: Type.Optional(
    // Mayfly's id token is sent there.
    Field.guarded(
      Field.upstream('Address that stands for all Google APIs, such as a private endpoint.', {
        maxLength: 512,
        pattern: '^https?://[^\\s?#]+[^\\s?#/]$',
      }),
    ),
  ),
  local: Field.local('The endpoint is on this machine or in its own network: permits loopback and http.'),
  local_user: Field.localUser(),
})
export type Config = Static<typeof config>

/** Of the JSON file that Google makes ("Create and delete service account keys"). */
export interface ServiceAccountKey {
  readonly email: string
  readonly keyId: string
  readonly key: KeyObject
}

/** Throws `BackendError` (`misconfigured`) that names the field. Returns the key, unless Mayfly federates. */
export function requireConsistent(settings: Config): ServiceAccountKey | undefined {
  const { key, provider, endpoint, local } = settings
  if (endpoint !== undefined) requireHttps('endpoint', endpoint, local)
  requireConfig((key === undefined) !== (provider === undefined), 'Give either "key" or "provider".')
  if (key === undefined) return undefined
  const parsed = parseKey(key)
  requireConfig(parsed !== undefined, '"key" is not the JSON key file of a service account.')
  return parsed
}

function parseKey(text: string): ServiceAccountKey | undefined {
  try {
    const { type, client_email: email, private_key_id: keyId, private_key: pem } = JSON.parse(text)
    if (type !== 'service_account' || typeof email !== 'string' || typeof keyId !== 'string') return undefined
    return { email, keyId, key: createPrivateKey(pem) }
  } catch {
    return undefined
  }
}
