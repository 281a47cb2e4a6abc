import { failureOf } from '../frame/failure.ts'
import { jsonText, oneLine } from '../frame/terminal-text.ts'
import type { Context } from '../frame/verb.ts'
import type { IssuedCredentials, Outcome } from './issued-credentials.ts'

const REVOKE_MS = 15_000

/** How the command ended, if it ran. */
export interface CommandEnd {
  readonly code: number
  /** Settles once all its output has been passed on, so that our report comes last. */
  readonly drained: Promise<unknown>
}

/**
 * Revokes every credential of the run and reports those left over, with `--json` all of them. Returns false when any
 * is left.
 */
export async function settleAll(
  context: Pick<Context, 'out' | 'stderr'>,
  issued: IssuedCredentials,
  hardStop: AbortSignal,
  end: CommandEnd | undefined,
): Promise<boolean> {
  const failure = await issued.revokeAll(AbortSignal.any([hardStop, AbortSignal.timeout(REVOKE_MS)]))
  await end?.drained
  const outcomes = issued.outcomes()
  const left = outcomes.filter(({ revoked }) => !revoked)
  if (left.length > 0) context.out.note(oneLine(leftOver(left, failure)))
  for (const backend of issued.unknown())
    context.out.note(
      oneLine(
        `mayfly: No reply to a request for a credential of ${backend}: if the server issued one, it expires on its own.`,
      ),
    )
  if (context.out.isJson && end !== undefined) {
    const report = { credentials: outcomes, exit_code: left.length > 0 ? end.code || 1 : end.code }
    context.stderr.write(`${jsonText(report)}\n`)
  }
  return left.length === 0
}

function leftOver(left: readonly Outcome[], failure: unknown): string {
  const all = left.map(({ id, backend, expires_at }) => `${id} of ${backend}, which expires at ${expires_at}`)
  const what = left.length === 1 ? 'One credential' : `${left.length} credentials`
  const ids = left.map(({ id }) => id).join(' ')
  return `mayfly: ${what} could not be revoked: ${all.join('; ')}. ${reasonOf(failure)} Try: mayfly revoke ${ids}`
}

function reasonOf(failure: unknown): string {
  const name = failure instanceof Error ? failure.name : ''
  if (name === 'Interrupted') return 'Revoking was interrupted.'
  if (name === 'TimeoutError' || name === 'AbortError') return 'The server did not answer in time.'
  return failureOf(failure).message
}
