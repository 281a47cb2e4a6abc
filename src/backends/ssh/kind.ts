import { misconfigured, unsupported } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import { endingAt, wholeSeconds } from '../issued.ts'
import type { Host, Issued, IssueRequest } from '../kind.ts'
import { matches } from '../named-scopes.ts'
import { serialOf, signCertificate, writeKrl } from './certificate.ts'
import { type Config, config, extensionsOf, optionsOf, type Params, params } from './config.ts'
import {
  blobOf,
  lineOf,
  newPrivateKey,
  type PublicKey,
  publicKeyOf,
  readPrivateKey,
  readPublicKey,
  writePrivateKey,
} from './wire.ts'

/** Tolerated difference between the clocks of Mayfly and a server, in seconds. */
const SKEW_S = 60

/** An OpenSSH user certificate, signed by a CA of this backend alone, which servers trust by `TrustedUserCAKeys`. */
export const ssh = defineKind({
  type: 'ssh',
  title: 'SSH certificate',
  config,
  params,
  limits: { minTtlMs: 1_000, why: 'An SSH certificate counts its expiry in whole seconds.' },
  revocation: 'expiry_only',
  upstream: false,
  scopes: {
    valid: (scope) => isScope(scope) && !scope.includes(':'),
    gives: ({ principals }, scope) => principals.some((one) => matches(scope, one)),
    forms: [
      { form: '<principal>', gives: 'log in where a server accepts this principal' },
      { form: '*', gives: 'log in where a server accepts any principal of the backend' },
    ],
    help: 'The name of a principal; with * at its end, all principals of the backend that begin so.',
  },
  async complete(settings) {
    optionsOf(settings, {})
    const key = settings.ca_key === undefined ? await newPrivateKey() : readPrivateKey(settings.ca_key)
    const { type, fields } = publicKeyOf(key)
    return {
      ...settings,
      ca_key: settings.ca_key ?? writePrivateKey(key, 'mayfly-ca'),
      ca_public_key: lineOf(type, blobOf({ type, fields }), 'mayfly-ca'),
    }
  },
  open: openSsh,
})

async function openSsh(settings: Config, host: Host): Promise<Opened<Params>> {
  if (settings.ca_key === undefined) throw misconfigured('"ca_key" is missing.')
  const ca = readPrivateKey(settings.ca_key)
  return {
    async check() {
      optionsOf(settings, {})
      return settings.principals.includes('root')
        ? [
            'Certificates of this backend may log in as root; a server without AuthorizedPrincipalsFile accepts it.',
          ]
        : []
    },
    async issue(request): Promise<Issued> {
      const { credentialId, params: asked } = request
      const before = wholeSeconds(request, 'a certificate')
      const keyId = `${credentialId} ${request.agent.name}`
      const { key, fields } = await keyOf(asked, keyId)
      const serial = serialOf(credentialId)
      const certificate = signCertificate(ca, {
        ...{ key, serial, keyId, before },
        principals: principalsOf(settings, request),
        after: Math.floor(request.issuedAt / 1000) - SKEW_S,
        options: optionsOf(settings, asked),
        extensions: extensionsOf(settings, asked),
      })
      return {
        fields: { ...fields, certificate },
        facts: { serial: String(serial) },
        ...endingAt(before * 1000, request.expiresAt),
      }
    },
    revocationList: async (revoked) => ({
      contentType: 'application/octet-stream',
      body: await writeKrl(revoked, host.now(), `${host.name} of Mayfly`),
    }),
  }
}

/** Explicitly those that are granted. Throws `unsupported` where a scope grants none. */
function principalsOf({ principals }: Config, { scopes }: IssueRequest<Params>): string[] {
  if (scopes.length === 0) throw unsupported('A certificate needs a principal: request at least one scope.')
  if (!scopes.every((scope) => principals.some((one) => matches(scope, one))))
    throw unsupported('One of the scopes covers no principal of the backend.')
  return principals.filter((one) => scopes.some((scope) => matches(scope, one)))
}

async function keyOf(
  asked: Params,
  comment: string,
): Promise<{ readonly key: PublicKey; readonly fields: Readonly<Record<string, string>> }> {
  if (asked.public_key !== undefined) return { key: readPublicKey(asked.public_key), fields: {} }
  const fresh = await newPrivateKey()
  const key = publicKeyOf(fresh)
  const line = lineOf(key.type, blobOf(key), comment)
  return { key, fields: { private_key: writePrivateKey(fresh, comment), public_key: line } }
}
