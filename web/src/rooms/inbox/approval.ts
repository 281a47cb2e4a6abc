import type { Approval, PendingEnrollment } from '../../../../src/client/wire.ts'

/** What a person has chosen in the form of an approval. */
export interface Choice {
  readonly scopes: ReadonlySet<string>
  /** A duration; empty: as requested. */
  readonly lifetime: string
  readonly note: string
  readonly isReplacing: boolean
}

/** Scopes that can be given: those that lead nowhere are not chosen unless a person does. */
export function possible({ scopes, difference }: PendingEnrollment): readonly string[] {
  return scopes.filter((scope) => difference?.impossible.includes(scope) !== true)
}

/** What is sent: only what differs from the request. */
export function approvalOf(row: PendingEnrollment, choice: Choice): Approval {
  const chosen = row.scopes.filter((scope) => choice.scopes.has(scope))
  const note = choice.note.trim()
  return {
    ...(chosen.length === row.scopes.length ? {} : { scopes: chosen }),
    ...(choice.lifetime === '' ? {} : { expires_in: choice.lifetime }),
    ...(note === '' ? {} : { note }),
    ...(choice.isReplacing ? { replace: true } : {}),
  }
}

/** Whether the approval gives power over Mayfly itself, which is confirmed with a passkey. */
export const isAdministering = (scopes: readonly string[]): boolean =>
  scopes.some((scope) => scope === 'admin' || scope.startsWith('admin:'))
