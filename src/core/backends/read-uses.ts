import { X509Certificate } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Kind } from '../../backends/kind.ts'
import { mergeUses, namesOfUses } from '../../domain/merge-uses.ts'
import { invalid } from '../../domain/problems.ts'
import { readUseRules, type SentUseRules } from '../../domain/read-use-rules.ts'
import type { UseRules } from '../../domain/use.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'
import { requireUsePower, requireWholeBackend } from './backend-power.ts'

/** The sent rules of use, undefined where none were sent, and those that the backend has. */
interface Given {
  readonly sent: SentUseRules | null | undefined
  readonly old: UseRules | null
  readonly name: string
}

/**
 * The rules of use of a backend as they are stored. They decide where its secrets go, so only full administrators set others;
 * to remove them takes the right to the whole backend, because they may forbid something. Throws `insufficient_scope` and
 * `invalid_request`.
 */
export function readUses(
  core: Pick<Core, 'denials'>,
  actor: Actor,
  { sent, old, name }: Given,
): UseRules | null {
  if (sent === undefined) return old
  if (sent === null) {
    if (old !== null) requireWholeBackend(core, actor, name)
    return null
  }
  const rules = readUseRules(sent)
  if (isDeepStrictEqual(rules, old)) return old
  requireUsePower(core, actor)
  for (const [index, { ca }] of (rules.uses ?? []).entries())
    if (ca !== undefined) requireCertificates(ca, `uses.uses[${index}].ca`)
  return rules
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

function requireCertificates(pem: string, at: string): void {
  const found = pem.match(CERTIFICATE) ?? []
  const isMore = pem.replaceAll(CERTIFICATE, '').trim() !== ''
  if (found.length === 0 || isMore || !found.every(isCertificate))
    throw invalid(`"${at}" is one or more certificates in PEM, and nothing else.`)
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined
  } catch {
    return false
  }
}

/** Sentences about rules that name no use of this backend: a rule that forbids something would silently forbid nothing. */
export function useWarnings(
  kind: Pick<Kind, 'uses'>,
  config: Readonly<Record<string, unknown>> | undefined,
  rules: UseRules | null,
): string[] {
  const named = [...(rules?.allow ?? []), ...(rules?.deny ?? [])].flatMap(({ use }) => use ?? [])
  if (rules === null || named.length === 0 || config === undefined) return []
  const known = new Set(namesOfUses(mergeUses(kind.uses?.(config, []) ?? [], rules)))
  const unknown = [...new Set(named)].filter((use) => !known.has(use))
  const list = known.size === 0 ? 'none' : [...known].join(', ')
  return unknown.map(
    (use) => `A rule of "uses" is for the use "${use}"; without scopes, this backend has: ${list}.`,
  )
}
