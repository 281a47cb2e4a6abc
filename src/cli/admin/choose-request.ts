import type { Client } from '../../client/client.ts'
import type { PendingEnrollment } from '../../client/wire.ts'
import { collect } from '../frame/collect.ts'
import { CliError, usage } from '../frame/failure.ts'
import { table } from '../frame/output.ts'
import { ask } from '../frame/prompt.ts'
import type { Context } from '../frame/verb.ts'
import { findUndecided, PENDING_HEADING, pendingCells } from './pending.ts'

/** More would scroll the first ones away. */
const MOST_OFFERED = 30

/** An agent may have the id of another request as its name, so text of this form is never a name. */
export const isRequestId = (text: string) => /^enr_[0-9a-z]{26}$/.test(text)

/**
 * The pending request with this id or this name. At a terminal, a person chooses if several have the name, or if neither
 * is given. Throws `CliError`.
 */
export async function chooseRequest(
  context: Context,
  client: Client,
  given: string | undefined,
  verb: 'approve' | 'reject',
): Promise<PendingEnrollment> {
  if (given !== undefined && isRequestId(given)) return findUndecided(client, given)
  const isTerminal = context.stdin.isTTY === true
  if (given === undefined && !isTerminal)
    throw usage('The argument "request" is missing.', 'List what is pending with `mayfly pending`.')
  const wanted = given?.toLowerCase()
  const pending = await collect(client.admin.pending.list({}, { limit: 1000 }))
  const found = pending.filter(({ name }) => wanted === undefined || name.toLowerCase() === wanted)
  const [only, ...others] = found
  if (only === undefined)
    throw new CliError(
      'enrollment_not_found',
      given === undefined ? 'Nothing is pending.' : 'No such enrollment or request is pending.',
      given === undefined ? {} : { hint: 'List what is pending with `mayfly pending`.' },
    )
  if (others.length === 0) return only
  if (!isTerminal)
    throw usage(
      `${found.length} requests of ${only.name} are pending.`,
      `Give the id of one, from \`mayfly pending\`: mayfly ${verb} ID.`,
    )
  return choose(context, found, verb)
}

async function choose(
  context: Context,
  found: readonly PendingEnrollment[],
  verb: string,
): Promise<PendingEnrollment> {
  const offered = found.slice(0, MOST_OFFERED)
  const rows = offered.map((one, index) => [String(index + 1), ...pendingCells(one, context.now())])
  context.out.note(table(['', ...PENDING_HEADING], rows))
  if (offered.length < found.length)
    context.out.note(`These are the oldest ${offered.length} of ${found.length}.`)
  const answer = await ask(context, `Which one do you want to ${verb}? [1-${offered.length}] `)
  const chosen = /^\d{1,3}$/.test(answer) ? offered[Number(answer) - 1] : undefined
  if (chosen !== undefined) return chosen
  throw usage(`That is not a number from 1 to ${offered.length}.`, 'Nothing was decided.')
}
