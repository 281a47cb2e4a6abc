import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { misconfigured } from '../../domain/backend-error.ts'
import * as Field from '../fields.ts'
import { requireConfig, requireHttps } from '../fields.ts'

const UUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'
const HOST = '[a-z0-9](?:[a-z0-9-]{0,62}\\.)+[a-z]{2,63}'
const PATH = '(?:/[A-Za-z0-9._-]{1,64}){0,4}'
/** `https://NAME`, with a path or without, and `api://NAME` in Entra; an application may also be named by its id. */
const RESOURCE = `(?:${HOST}${PATH}|api/[A-Za-z0-9._/-]{1,128}|${UUID})`
/** Whether the name is the id of an application. */
export const isId = (resource: string) => new RegExp(`^${UUID}$`).test(resource)

const example = {
  tenant_id: '11111111-2222-3333-4444-555555555555',
  client_id: '66666666-7777-8888-9999-000000000000',
  resources: ['management.azure.com'],
}

export const config = Field.configOf(example, {
  tenant_id: Field.upstream('Directory (tenant).', { pattern: `^(?:${UUID}|[a-z0-9][a-z0-9.-]{1,252})$` }),
  client_id: Field.upstream('Application (client) whose tokens agents get.', { pattern: `^${UUID}$` }),
  client_secret: Type.Optional(
    Field.secret('Client secret; or a certificate, or neither.', { maxLength: 1024 }),
  ),
  certificate: Type.Optional(Field.text('PEM of the certificate of the application.', { maxLength: 32_768 })),
  private_key: Type.Optional(
    Field.secret('PEM of the private key of the certificate.', { maxLength: 16_384 }),
  ),
  audience: Field.protection(
    "Without a secret and a certificate: audience of Mayfly's id token, a federated credential.",
    { minLength: 1, maxLength: 512, default: 'api://AzureADTokenExchange' },
  ),
  resources: Field.list(
    Field.text('Resource.', { pattern: `^${RESOURCE}$` }),
    32,
    'Resources for which tokens are made: a host name such as vault.azure.net, with a path or without, api/NAME, or an id.',
    { default: ['management.azure.com'] },
  ),
  // Mayfly's id token is sent there. The national clouds: Microsoft Entra, "National clouds".
  authority: Field.guarded(
    Field.upstream('Address of Microsoft Entra; others for national clouds.', {
      maxLength: 512,
      pattern: '^https?://[^\\s?#]+[^\\s?#/]$',
      default: 'https://login.microsoftonline.com',
    }),
    'https://login.microsoftonline.com',
    'https://login.microsoftonline.us',
    'https://login.partner.microsoftonline.cn',
  ),
  local: Field.local('The authority is on this machine or in its own network: permits loopback and http.'),
  local_user: Field.localUser(),
})
export type Config = Static<typeof config>

/** The proof that Mayfly presents to log in as the application. */
export type Login =
  | { readonly way: 'secret'; readonly secret: string }
  | { readonly way: 'certificate'; readonly thumbprint: string; readonly key: KeyObject }
  | { readonly way: 'federation' }

/** Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): Login {
  const { client_secret: secret, certificate, private_key: key, authority, local } = settings
  requireHttps('authority', authority, local)
  requireConfig((certificate === undefined) === (key === undefined), '"certificate" needs "private_key".')
  requireConfig(
    secret === undefined || certificate === undefined,
    'Give "client_secret" or "certificate", not both.',
  )
  if (secret !== undefined) return { way: 'secret', secret }
  if (certificate === undefined || key === undefined) return { way: 'federation' }
  const pair = readPair(certificate, key)
  if (pair === undefined) {
    throw misconfigured('"private_key" is not the RSA key of "certificate", both as PEM.')
  }
  return { way: 'certificate', ...pair }
}

function readPair(certificate: string, pem: string) {
  try {
    const x509 = new X509Certificate(certificate)
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType !== 'rsa' || !x509.checkPrivateKey(key)) return undefined
    const thumbprint = Buffer.from(x509.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
    return { thumbprint, key }
  } catch {
    return undefined
  }
}
