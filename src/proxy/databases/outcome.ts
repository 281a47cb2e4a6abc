import type { Decision } from '../types.ts'
import { Refusal, type RefusalCode } from './refusal.ts'
import { ServerError } from './server-error.ts'

/** What is recorded of a connection. */
export interface Outcome {
  /** The login upstream begins. */
  decide(decision: Decision): void
  /** The session has begun: what ends it from now on refuses nothing. */
  joined(): void
  /** `error`: why it ended; `isKnown`: the child was admitted. */
  failed(error: unknown, isKnown: boolean): void
  cut(): void
  /** `name`: of the placeholder that was sent here and belongs elsewhere. */
  misused(name: string): void
  /** Undefined: the child went away before anything was decided. */
  result():
    | { readonly decision: Decision; readonly reason: RefusalCode | null; readonly placeholder?: string }
    | undefined
}

export function createOutcome(): Outcome {
  let decision: Decision | undefined
  let reason: RefusalCode | null = null
  let hasJoined = false
  let isCut = false
  let placeholder: string | undefined
  return {
    decide(made) {
      decision = made
    },
    joined() {
      hasJoined = true
    },
    cut() {
      isCut = true
      if (!hasJoined) [decision, reason] = [undefined, 'credential_ended']
    },
    failed(error, isKnown) {
      if (isCut || hasJoined) return
      if (error instanceof Refusal) [decision, reason] = [undefined, error.code]
      else if (error instanceof ServerError) [decision, reason] = [undefined, 'upstream_refused']
      else if (decision === undefined && isKnown) reason = 'upstream_unreachable'
    },
    misused(name) {
      placeholder = name
    },
    result() {
      if (placeholder !== undefined)
        return { decision: 'misused', reason: 'placeholder_misused', placeholder }
      if (decision !== undefined) return { decision, reason: null }
      return reason === null ? undefined : { decision: 'refused', reason }
    },
  }
}
