import { misconfigured } from '../../domain/backend-error.ts'
import { isId } from '../../domain/ids.ts'
import { DAY_MS } from '../../domain/limits.ts'
import { isScope } from '../../domain/scope.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import { endingAt, wholeSeconds } from '../issued.ts'
import type { Host, Issued } from '../kind.ts'
import { newAuthority, newKeyPair, openAuthority, readRequest } from './authority.ts'
import {
  type Config,
  canGive,
  config,
  isName,
  type Params,
  params,
  requireNames,
  subjectsOf,
} from './config.ts'
import { serialOf } from './list.ts'

/** Tolerated difference between the clocks of Mayfly and a verifier. */
const SKEW_MS = 60_000
const WARN_MS = 60 * DAY_MS
const USAGES = {
  client: ['clientAuth'],
  server: ['serverAuth'],
  both: ['clientAuth', 'serverAuth'],
} as const

/** An X.509 certificate (RFC 5280) for TLS, signed by a CA of this backend alone. */
export const x509 = defineKind({
  type: 'x509',
  title: 'X.509 certificate',
  config,
  params,
  limits: { minTtlMs: 1_000, why: 'A certificate counts its expiry in whole seconds.' },
  revocation: 'expiry_only',
  upstream: false,
  scopes: {
    valid: (scope) => isScope(scope) && (scope.endsWith('*') || isName(scope)),
    gives: canGive,
    forms: [
      { form: '<host>', gives: 'prove to be the host or the service of this name' },
      { form: 'spiffe://<domain>/<path>', gives: 'prove to be the workload of this SPIFFE ID' },
      { form: '*', gives: 'prove to be all that the backend spells out' },
    ],
    help: 'A host name in lower case or a SPIFFE ID; with * at its end, all names that the backend spells out and that begin so.',
  },
  async complete(settings) {
    requireNames(settings)
    const { ca_key: key, ca_certificate: certificate } = settings
    if (key === undefined && certificate === undefined) {
      const fresh = await newAuthority(Date.now())
      return { ...settings, ca_key: fresh.key, ca_certificate: fresh.certificate }
    }
    if (key === undefined) throw misconfigured('"ca_certificate" needs "ca_key".')
    if (certificate === undefined) throw misconfigured('"ca_key" needs "ca_certificate".')
    await openAuthority(key, certificate)
    return settings
  },
  open: openX509,
})

async function openX509(settings: Config, host: Host): Promise<Opened<Params>> {
  const { ca_key: key, ca_certificate: certificate } = settings
  if (key === undefined || certificate === undefined) {
    throw misconfigured('"ca_key" or "ca_certificate" is missing.')
  }
  const authority = await openAuthority(key, certificate)
  return {
    async check() {
      requireNames(settings)
      if (authority.endsAt > host.now() + WARN_MS) return []
      return [`The certificate of the authority ends at ${new Date(authority.endsAt).toISOString()}.`]
    },
    async issue(request): Promise<Issued> {
      if (!isId('credential', request.credentialId)) {
        throw misconfigured('The credential id is not well formed.')
      }
      const to = wholeSeconds(request, 'a certificate') * 1000
      if (to > authority.endsAt) {
        throw misconfigured('The certificate of the authority ends before this one would.')
      }
      const subjects = subjectsOf(settings, request.scopes)
      const { csr } = request.params
      const pair = csr === undefined ? await newKeyPair() : undefined
      const serial = serialOf(request.credentialId)
      const leaf = await authority.issue({
        ...subjects,
        publicKey: pair?.publicKey ?? (await readRequest(csr ?? '')),
        serial,
        usages: USAGES[settings.usage],
        from: request.issuedAt - SKEW_MS,
        to,
        listUrl: `${host.issuer}/revoked`,
      })
      return {
        fields: { ...(pair && { private_key: pair.pem }), certificate: leaf, ca: authority.pem },
        facts: { serial },
        ...endingAt(to, request.expiresAt),
      }
    },
    // RFC 2585 §4.2.
    revocationList: async (revoked) => ({
      contentType: 'application/pkix-crl',
      body: await authority.list(revoked, host.now()),
    }),
  }
}
