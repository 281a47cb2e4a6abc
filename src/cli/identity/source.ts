import type { CallOptions } from '../../client/send.ts'
import { CliError, EXIT } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { givenOf } from '../session/session.ts'

/** Where a workload gets a token that says who it is. */
export interface IdentitySource {
  /** As `--identity` takes it. */
  readonly name: string
  /** What a person calls it. */
  readonly title: string
  /** What must be there, for messages. */
  readonly needs: string
  /** Whether it is here, by variables and files alone: nothing is asked. */
  isHere(context: Context): boolean
  /** For machines of a cloud: whether its metadata service answers. Never rejects. */
  answers?(context: Context, signal: AbortSignal): Promise<boolean>
  /**
   * Tells this job or workload from another of the same user, whose login it must not use. Not secret, because only its
   * digest is stored. Throws if that cannot be told.
   */
  workload(context: Context): string
  /** A JWT for this audience, not checked yet. Throws `CliError`. */
  token(context: Context, audience: string, options: CallOptions): Promise<string>
}

/** The source is there, and gives no token. */
export function noToken(title: string, why: string, hint?: string, cause?: unknown): CliError {
  return new CliError('identity_unavailable', `${title} gave no token: ${why}`, {
    exit: EXIT.unauthenticated,
    hint,
    cause,
  })
}

/** The value of a variable, unless it is empty. */
export function given({ env }: Pick<Context, 'env'>, name: string): string | undefined {
  return givenOf(env[name])
}
