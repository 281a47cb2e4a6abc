import type { Approval, PendingEnrollment } from '../../../../src/client/wire.ts'
import { linesOf } from '../../ui/fields.tsx'

/** What a person has chosen in the form of an approval. */
export interface Choice {
  readonly scopes: ReadonlySet<string>
  /** What an agent of a platform is given, as it was typed: a claim asks for nothing. */
  readonly given: string
  /** A duration; empty: as requested. */
  readonly lifetime: string
  readonly note: string
  readonly isReplacing: boolean
}

/** Scopes that can be given: those that lead nowhere are not chosen unless a person does. */
export function possible({ scopes, difference }: PendingEnrollment): readonly string[] {
  return scopes.filter((scope) => difference?.impossible.includes(scope) !== true)
}

export const isClaim = ({ type }: Pick<PendingEnrollment, 'type'>): boolean => type === 'claim'

/** What the token of an agent of a platform says: any text. */
export function tokenOf({ metadata }: PendingEnrollment) {
  const text = (name: string) => {
    const value = metadata?.[name]
    return typeof value === 'string' ? value : ''
  }
  const claims = metadata?.['claims']
  const leftOut = metadata?.['claims_left_out']
  return {
    platform: text('platform'),
    issuer: text('issuer'),
    subject: text('subject'),
    claims: typeof claims === 'object' && claims !== null ? Object.entries(claims) : [],
    leftOut: typeof leftOut === 'number' ? leftOut : 0,
  }
}

/** What is sent: only what differs from the request. */
export function approvalOf(row: PendingEnrollment, choice: Choice): Approval {
  const chosen = isClaim(row) ? linesOf(choice.given) : row.scopes.filter((scope) => choice.scopes.has(scope))
  const note = choice.note.trim()
  return {
    ...(!isClaim(row) && chosen.length === row.scopes.length ? {} : { scopes: chosen }),
    ...(choice.lifetime === '' ? {} : { expires_in: choice.lifetime }),
    ...(note === '' ? {} : { note }),
    ...(choice.isReplacing ? { replace: true } : {}),
  }
}

/** Whether the approval gives power over Mayfly itself, which is confirmed with a passkey. */
export const isAdministering = (scopes: readonly string[]): boolean =>
  scopes.some((scope) => scope === 'admin' || scope.startsWith('admin:'))
