import { failureOf } from '../frame/failure.ts'
import { oneLine } from '../frame/output.ts'
import type { Context } from '../frame/verb.ts'
import type { Ledger, Outcome } from './issued-credentials.ts'

const HANG_UP_MS = 3_000
const REVOKE_MS = 15_000

/**
 * Revokes all that is left, tells what could not be revoked, and with `--json` what was done. `code`: of the command,
 * if it ran; `drained`: when the last of its output has been passed on, which comes before what we say. Returns false
 * when something is left.
 */
export async function settleAll(
  context: Pick<Context, 'out' | 'stderr'>,
  ledger: Ledger,
  hardStop: AbortSignal,
  code: number | undefined,
  drained?: Promise<unknown>,
): Promise<boolean> {
  await ledger.settle(HANG_UP_MS)
  const failure = await ledger.revokeAll(AbortSignal.any([hardStop, AbortSignal.timeout(REVOKE_MS)]))
  await drained
  const outcomes = ledger.outcomes()
  const left = outcomes.filter(({ revoked }) => !revoked)
  if (left.length > 0) context.out.note(oneLine(leftOver(left, failure)))
  for (const backend of ledger.unknown())
    context.out.note(
      oneLine(`mayfly: No answer came for a credential of ${backend}: if there is one, it ends by itself.`),
    )
  if (context.out.isJson && code !== undefined) {
    const report = { credentials: outcomes, exit_code: left.length > 0 ? code || 1 : code }
    context.stderr.write(`${JSON.stringify(report)}\n`)
  }
  return left.length === 0
}

function leftOver(left: readonly Outcome[], failure: unknown): string {
  const all = left.map(({ id, backend, expires_at }) => `${id} of ${backend}, which ends at ${expires_at}`)
  const what = left.length === 1 ? 'One credential' : `${left.length} credentials`
  const ids = left.map(({ id }) => id).join(' ')
  return `mayfly: ${what} could not be revoked: ${all.join('; ')}. ${reasonOf(failure)} Try: mayfly revoke ${ids}`
}

function reasonOf(failure: unknown): string {
  const name = failure instanceof Error ? failure.name : ''
  if (name === 'Interrupted') return 'It was interrupted.'
  if (name === 'TimeoutError' || name === 'AbortError') return 'The server did not answer in time.'
  return failureOf(failure).message
}
