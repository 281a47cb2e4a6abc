import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { BackendError } from '../../domain/backend-error.ts'
import { localField, localUserField, requireConfig, requireHttps } from '../fields.ts'
import { guardedField, protectionField, secretField, upstreamField } from '../kind.ts'

const UUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'
const HOST = '[a-z0-9](?:[a-z0-9-]{0,62}\\.)+[a-z]{2,63}'
const PATH = '(?:/[A-Za-z0-9._-]{1,64}){0,4}'
/** `https://NAME`, with a path or without, and `api://NAME` in Entra; an application may also be named by its id. */
const RESOURCE = `(?:${HOST}${PATH}|api/[A-Za-z0-9._/-]{1,128}|${UUID})`
/** Whether the name is the id of an application. */
export const isId = (resource: string) => new RegExp(`^${UUID}$`).test(resource)

export const config = Type.Object(
  {
    tenant_id: Type.String(
      upstreamField({
        pattern: `^(?:${UUID}|[a-z0-9][a-z0-9.-]{1,252})$`,
        description: 'Directory (tenant).',
      }),
    ),
    client_id: Type.String(
      upstreamField({ pattern: `^${UUID}$`, description: 'Application (client) whose tokens agents get.' }),
    ),
    client_secret: Type.Optional(
      Type.String(
        secretField({ maxLength: 1024, description: 'Client secret; or a certificate, or neither.' }),
      ),
    ),
    certificate: Type.Optional(
      Type.String({ maxLength: 32_768, description: 'PEM of the certificate of the application.' }),
    ),
    private_key: Type.Optional(
      Type.String(
        secretField({ maxLength: 16_384, description: 'PEM of the private key of the certificate.' }),
      ),
    ),
    audience: Type.String(
      protectionField({
        minLength: 1,
        maxLength: 512,
        default: 'api://AzureADTokenExchange',
        description:
          "Without a secret and a certificate: audience of Mayfly's id token, a federated credential.",
      }),
    ),
    resources: Type.Array(Type.String({ pattern: `^${RESOURCE}$`, description: 'Resource.' }), {
      minItems: 1,
      maxItems: 32,
      default: ['management.azure.com'],
      description:
        'Resources for which tokens are made: a host name such as vault.azure.net, with a path or without, api/NAME, or an id.',
    }),
    // Mayfly's id token is sent there. The national clouds: Microsoft Entra, "National clouds".
    authority: Type.String(
      guardedField(
        upstreamField({
          maxLength: 512,
          pattern: '^https?://[^\\s?#]+[^\\s?#/]$',
          default: 'https://login.microsoftonline.com',
          description: 'Address of Microsoft Entra; others for national clouds.',
        }),
        'https://login.microsoftonline.com',
        'https://login.microsoftonline.us',
        'https://login.partner.microsoftonline.cn',
      ),
    ),
    local: localField('The authority is on this machine or in its own network: permits loopback and http.'),
    local_user: localUserField(),
  },
  {
    additionalProperties: false,
    examples: [
      {
        tenant_id: '11111111-2222-3333-4444-555555555555',
        client_id: '66666666-7777-8888-9999-000000000000',
        resources: ['management.azure.com'],
      },
    ],
  },
)
export type Config = Static<typeof config>

/** The proof by which Mayfly logs in as the application. */
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
    throw new BackendError('misconfigured', '"private_key" is not the RSA key of "certificate", both as PEM.')
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
