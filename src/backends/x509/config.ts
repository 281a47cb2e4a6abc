import Type, { type Static } from 'typebox'
import { misconfigured, unsupported } from '../../domain/backend-error.ts'
import * as Field from '../fields.ts'

/** The characters of a scope, so that a scope can name each of them; a star stands for one or more labels or for a path. */
const NAME = { minLength: 1, maxLength: 250, pattern: '^(\\*\\.)?[A-Za-z0-9._:/-]+\\*?$' }

const example = { names: ['worker', 'spiffe://example.com/ns/*'] }

export const config = Field.configOf(example, {
  names: Field.list(
    Field.text('Name.', NAME),
    64,
    'Names for which certificates are issued: web.example.com, *.example.com for every host below, spiffe://example.com/web, or spiffe://example.com/ns/* for every path below.',
  ),
  usage: Field.choice(['client', 'server', 'both'], 'What certificates are for: client, server or both.'),
  ca_key: Type.Optional(
    Field.secret('Private key of the CA (PKCS #8, P-256, P-384 or RSA); generated with its certificate.', {
      maxLength: 8192,
    }),
  ),
  // Verifiers that trust another CA accept none of the living certificates.
  ca_certificate: Type.Optional(
    Field.upstream('Certificate of the CA as PEM, which servers trust; generated with its key.', {
      maxLength: 16_384,
    }),
  ),
})
export type Config = Static<typeof config>

export const params = Field.closed({
  csr: Type.Optional(
    Field.text(
      'Certificate request (PKCS #10, PEM) with the key to certify; its names are ignored. Default: a fresh P-256 key pair.',
      { maxLength: 16_384 },
    ),
  ),
})
export type Params = Static<typeof params>

/** RFC 1123 §2.1: labels of letters, digits and hyphens. In lower case alone, so that each name has one form. */
const HOST = /^(?=.{1,250}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/
/** The SPIFFE Identity §2.1 and §2.2: trust domain, and a path without empty, `.` and `..` segments. */
const SPIFFE = /^spiffe:\/\/[a-z0-9._-]{1,255}(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._-]+)+$/

const isUri = (name: string) => name.startsWith('spiffe://')
export const isName = (name: string): boolean => SPIFFE.test(name) || HOST.test(name)

/** Throws `misconfigured` for a name that no certificate can contain. */
export function requireNames({ names }: Config): void {
  const isGiven = (name: string) =>
    isUri(name) ? isName(name.replace(/\/\*$/, '/x')) : isName(name.replace(/^\*\./, ''))
  const wrong = names.find((name) => !isGiven(name))
  if (wrong === undefined) return
  throw misconfigured(`"names" contains "${wrong}", which is neither a host nor a SPIFFE ID.`)
}

/** Whether the configuration permits a certificate for this name. */
function permits(permitted: string, name: string): boolean {
  if (permitted.startsWith('*.')) return !isUri(name) && name.endsWith(permitted.slice(1))
  if (permitted.endsWith('/*')) return isUri(name) && name.startsWith(permitted.slice(0, -1))
  return permitted === name
}

/** The names that a scope grants; one that ends in `*` grants those that the configuration spells out and that begin so. */
export function namesOf({ names }: Config, scope: string): string[] {
  const spelled = names.filter((name) => !name.includes('*'))
  if (scope.endsWith('*')) return spelled.filter((name) => name.startsWith(scope.slice(0, -1)))
  return isName(scope) && names.some((one) => permits(one, scope)) ? [scope] : []
}

/** Whether a request for some part of this scope can succeed. */
export function canGive(settings: Config, scope: string): boolean {
  if (namesOf(settings, scope).length > 0) return true
  if (!scope.endsWith('*')) return false
  const start = scope.slice(0, -1)
  return settings.names.some((name) => {
    if (name.startsWith('*.')) return !start.includes(':')
    const path = name.endsWith('/*') ? name.slice(0, -1) : name
    return path.startsWith(start) || (path !== name && start.startsWith(path))
  })
}

/** The subject alternative names of a request. Throws `unsupported` where a scope grants none. */
export function subjectsOf(
  settings: Config,
  scopes: readonly string[],
): { readonly hosts: readonly string[]; readonly uris: readonly string[] } {
  if (scopes.length === 0) throw unsupported('A certificate needs a name: request the scope of one.')
  if (scopes.some((scope) => namesOf(settings, scope).length === 0))
    throw unsupported('One of the scopes covers no name of the backend; request the scope of one name.')
  const all = [...new Set(scopes.flatMap((scope) => namesOf(settings, scope)))]
  const uris = all.filter(isUri)
  // The SPIFFE X.509-SVID §2: exactly one URI.
  if (uris.length > 1) {
    throw unsupported('A certificate has one SPIFFE ID at most; request the scope of one.')
  }
  return { hosts: all.filter((name) => !isUri(name)), uris }
}
