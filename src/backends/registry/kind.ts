import { randomBytes } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { BackendError, misconfigured } from '../../domain/backend-error.ts'
import { DAY_MS } from '../../domain/limits.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import * as Field from '../fields.ts'
import { requireConfig, requireHttps } from '../fields.ts'
import { requireShort, wholeSeconds } from '../issued.ts'
import type { Host } from '../kind.ts'
import { certificateIn, generateKey, prepareSigner, type Signer, selfSigned } from './keys.ts'
import { tokenFor } from './realm.ts'
import { accessOf, gives, isRegistryScope, REPOSITORY } from './scopes.ts'
import { usesOf } from './uses.ts'

const NAME = { minLength: 1, maxLength: 255, pattern: `^${REPOSITORY}$` }
const PEM = { minLength: 1, maxLength: 8192 }

const example = { address: 'https://registry.example.com' }

const config = Field.configOf(example, {
  // Agents send their tokens there.
  address: Field.protection('Address of the registry, such as https://registry.example.com.', {
    minLength: 8,
    maxLength: 512,
    pattern: '^https?://[A-Za-z0-9.:\\[\\]-]+/?$',
  }),
  service: Type.Optional(
    Field.text('Its "service" in auth.token. Default: its host name with the port, if there is one.', {
      minLength: 1,
      maxLength: 255,
      pattern: '^[\\x21-\\x7e]+$',
    }),
  ),
  repositories: Type.Optional(
    Field.list(
      Field.text('Repository.', NAME),
      256,
      'Repositories that are granted, which a * can stand for. Default: all, by name.',
    ),
  ),
  leeway: Type.Integer({
    minimum: 0,
    maximum: 300,
    default: 60,
    description: 'Seconds for which the registry accepts an expired token: 60 in Distribution 2 and 3.',
  }),
  signing_key: Type.Optional(Field.secret('Private P-256 key as PEM; generated if absent.', PEM)),
  certificate: Type.Optional(
    Field.text('Its certificate as PEM, for rootcertbundle; generated if absent.', PEM),
  ),
  ca: Field.ca('PEM of the certificate authority of the registry.'),
  local: Field.local(
    'The registry is on this machine or in its own network: permits loopback addresses and http.',
  ),
  local_user: Field.localUser(),
})
export type Config = Static<typeof config>

/** Tokens for a container registry that trusts Mayfly as its token issuer (Distribution, "auth.token"). */
export const registry = defineKind({
  type: 'registry',
  serviceAccounts: ['docker-registry'],
  title: 'Container registry',
  config,
  limits: { minTtlMs: 1_000, why: 'A JWT counts its expiry in whole seconds.' },
  revocation: 'expiry_only',
  upstream: false,
  scopes: {
    valid: isRegistryScope,
    gives: ({ repositories }, scope) => gives(repositories, scope),
    forms: [
      { form: '<repository>:pull', gives: 'pull images of a repository' },
      { form: '<repository>:push', gives: 'pull and push images of a repository' },
      { form: '<repository>:delete', gives: 'delete images of a repository' },
      { form: '<repository>', gives: 'do all of this in a repository' },
    ],
    help:
      '<repository>, <repository>:pull, <repository>:push or <repository>:delete. ' +
      'A * stands for configured repositories, or for all permissions.',
  },
  uses: usesOf,
  validate: requireConsistent,
  async complete(settings) {
    if (settings.signing_key === undefined && settings.certificate !== undefined) {
      throw misconfigured('"certificate" goes with "signing_key".')
    }
    const key = settings.signing_key ?? (await generateKey())
    const certificate = settings.certificate ?? certificateIn(key) ?? (await selfSigned(key, Date.now()))
    await prepareSigner(key, certificate)
    // Kept together: with another certificate, even of the same key, the registry would refuse the tokens.
    const signingKey = certificateIn(key) === undefined ? `${key.trimEnd()}\n${certificate}` : key
    return { ...settings, signing_key: signingKey, certificate }
  },
  open: openRegistry,
})

function requireConsistent({ address, local }: Config): void {
  requireConfig(URL.canParse(address), '"address" is not a URL.')
  requireHttps('address', address, local)
}

async function openRegistry(settings: Config, host: Host): Promise<Opened> {
  if (settings.signing_key === undefined || settings.certificate === undefined) {
    throw misconfigured('"signing_key" or "certificate" is missing.')
  }
  const signer = await prepareSigner(settings.signing_key, settings.certificate)
  const { host: name } = new URL(settings.address)
  const service = settings.service ?? name
  const facts = { kid: signer.kid }
  return {
    check: (signal) => lookAt(settings, host, { signer, service }, signal),
    async issue(request) {
      const { scopes, agent, credentialId, issuedAt } = request
      const access = accessOf(settings.repositories, scopes)
      // The registry adds the leeway, so that it ends where the credential does.
      const end = wholeSeconds(request, 'a JWT')
      const iat = Math.floor(issuedAt / 1000)
      const times = { iat, nbf: iat, exp: end - settings.leeway }
      const claims = { iss: host.issuer, sub: agent.id, aud: service, jti: credentialId, ...times, access }
      const token = requireShort(await signer.sign(claims))
      const password = randomBytes(32).toString('base64url')
      const auth = Buffer.from(`${credentialId}:${password}`).toString('base64')
      // docker uses the token; programs that know no such entry ask the realm with the password.
      const auths = { [name]: { auth, registrytoken: token } }
      return {
        fields: {
          ...{ username: credentialId, password, token, registry: name },
          docker_config: JSON.stringify({ auths }),
        },
        presented: password,
        upstreamExpiresAt: end * 1000,
        facts,
      }
    },
    tokenFor: (request) => tokenFor(settings, { issuer: host.issuer, service, signer }, request),
    publicKeys: () => [signer.publicJwk],
  }
}

const SOON_MS = 30 * DAY_MS

/**
 * Whether the registry accepts our tokens. These are warnings: the certificate can only be given to the registry once the
 * backend exists, and tokens can be issued without reaching it.
 */
async function lookAt(
  settings: Config,
  host: Host,
  { signer, service }: { readonly signer: Signer; readonly service: string },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const warnings: string[] = []
  if (signer.certificateEndsAt < host.now() + SOON_MS) {
    warnings.push('The certificate ends soon: replace "signing_key" and "certificate", then rootcertbundle.')
  }
  const iat = Math.floor(host.now() / 1000)
  const claims = { iss: host.issuer, sub: 'mayfly', aud: service, iat, nbf: iat, exp: iat + 60, access: [] }
  const token = await signer.sign(claims)
  const way = { local: settings.local, ...(settings.ca === undefined ? {} : { ca: settings.ca }) }
  const look = async (headers: Record<string, string>) =>
    host.fetch(`${settings.address.replace(/\/$/, '')}/v2/`, { headers, signal }, way)
  try {
    const asked = await look({})
    const challenge = asked.headers.get('www-authenticate') ?? ''
    const [, wanted] = /service="([^"]*)"/.exec(challenge) ?? []
    if (asked.status !== 401 || !/^bearer /i.test(challenge)) {
      warnings.push('The registry does not ask for tokens: set up auth.token in its configuration.')
    } else if (wanted !== service) {
      warnings.push('The registry has another "service" in auth.token than this backend.')
    } else if ((await look({ authorization: `Bearer ${token}` })).status !== 200) {
      warnings.push(
        `The registry does not accept tokens of this backend yet: its "issuer" must be ${host.issuer}, and its rootcertbundle must contain the certificate of this backend.`,
      )
    }
  } catch (error) {
    if (!(error instanceof BackendError)) throw error
    warnings.push(
      `The registry could not be asked whether it accepts tokens of this backend. ${error.message}`,
    )
  }
  return warnings
}
