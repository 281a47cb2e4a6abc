import { createPrivateKey, type KeyObject } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { misconfigured } from '../../domain/backend-error.ts'
import * as Field from '../fields.ts'
import { requireHttps } from '../fields.ts'

/** Account names: letters, digits and hyphens, and for managed users `_` with the short code of the enterprise. */
export const OWNER = '[A-Za-z0-9][A-Za-z0-9_-]{0,99}'
export const REPOSITORY = '[A-Za-z0-9._-]{1,100}'

const example = { app_id: '123456', private_key: 'PEM of the private key', owner: 'acme' }

export const config = Field.configOf(example, {
  app_id: Field.text('App ID or client ID of the GitHub App.', { pattern: '^[A-Za-z0-9._-]{1,64}$' }),
  private_key: Field.secret('Private key of the App, the PEM file from GitHub.', { maxLength: 16_384 }),
  owner: Type.Optional(
    Field.text('Account where the App is installed. Without it, every scope names its account.', {
      pattern: `^${OWNER}$`,
    }),
  ),
  installation_id: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'The installation. Without it, Mayfly looks it up by account.',
    }),
  ),
  base_url: Field.upstream('The REST API; https://HOST/api/v3 on GitHub Enterprise Server.', {
    maxLength: 512,
    pattern: '^https?://[^\\s?#]+$',
    default: 'https://api.github.com',
  }),
  ca: Field.ca('PEM of the certificate authority of an Enterprise Server.'),
  local: Field.local(),
  local_user: Field.localUser(),
})
export type Config = Static<typeof config>

const REPOSITORY_OPTION = {
  pattern: `^(?:${OWNER}/)?${REPOSITORY}$`,
  description: 'A repository: owner/name, or its name where the account is known.',
}

export const params = Field.closed({
  repos: Type.Optional(
    Field.list(Type.String(REPOSITORY_OPTION), 500, 'Only these repositories; the scopes must cover each.'),
  ),
  read_only: Type.Optional(
    Type.Boolean({ description: 'Reduces every permission to read.', default: false }),
  ),
})
export type Params = Static<typeof params>

/** Throws `BackendError` (`misconfigured`) that names the field. Returns the key that signs as the App. */
export function requireConsistent(settings: Config): KeyObject {
  requireHttps('base_url', settings.base_url, settings.local)
  const key = privateKey(settings.private_key)
  // GitHub signs up RSA keys only ("Managing private keys for GitHub Apps").
  if (key?.asymmetricKeyType !== 'rsa') {
    throw misconfigured('"private_key" is not an RSA private key in PEM form.')
  }
  return key
}

/** The host that programs ask for, where it is not github.com. With data residency the API has a host of its own. */
export function enterpriseHost(baseUrl: string): string | undefined {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).host : ''
  if (host === '' || host === 'api.github.com') return undefined
  return host.endsWith('.ghe.com') ? host.replace(/^api\./, '') : host
}

function privateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem)
  } catch {
    return undefined
  }
}
