import type { Client } from '../../client/client.ts'
import type { PendingEnrollment } from '../../client/wire.ts'
import { CliError, usage } from '../frame/failure.ts'
import { collect } from '../frame/list.ts'
import { listing, table } from '../frame/output.ts'
import { ask } from '../frame/prompt.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'

type Status = PendingEnrollment['status']

/** Finds a request by its id. Throws `CliError` if there is none with this status. */
export async function findRequest(client: Client, id: string, status?: Status): Promise<PendingEnrollment> {
  const found = await client.admin.pending.show(id).catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== 'enrollment_not_found') throw error
    return undefined
  })
  if (found !== undefined && (status === undefined || found.status === status)) return found
  throw new CliError('enrollment_not_found', 'No such enrollment or request.', {
    hint: 'List what is pending with `mayfly pending`.',
  })
}

/** The columns of a listing of requests. */
export const PENDING_HEADING = ['ID', 'TYPE', 'NAME', 'SCOPES', 'FROM', 'REQUESTED'] as const

export const pendingCells = (row: PendingEnrollment, now: number): readonly string[] => [
  row.id,
  row.type === 'enroll' ? 'enrollment' : row.type === 'claim' ? 'claim' : 'more scopes',
  row.name,
  row.type === 'claim' && row.scopes.length === 0 ? `(none) ${subjectOf(row)}` : row.scopes.join(' '),
  row.ip_address ?? '',
  relative(row.created_at, now),
]

/** Whom the token of an agent of a platform names: any text. */
function subjectOf({ metadata }: PendingEnrollment): string {
  const subject = metadata?.['subject']
  return typeof subject === 'string' ? subject : ''
}

/** Finds a request that is still pending. Throws `CliError`. */
async function findUndecided(client: Client, id: string): Promise<PendingEnrollment> {
  const request = await findRequest(client, id)
  if (request.status === 'pending') return request
  const { status, decided_by: by } = request
  throw new CliError(
    status === 'expired' ? 'gone' : 'conflict',
    status === 'expired'
      ? 'This request has expired.'
      : `This request is already ${status}${by === undefined ? '' : ` by ${by}`}.`,
    {
      hint:
        status === 'expired'
          ? 'The agent must request it again.'
          : 'List what is pending with `mayfly pending`.',
    },
  )
}

function typeInWords({ type }: PendingEnrollment): string {
  if (type === 'claim') return 'claim: an agent of a platform, without rights'
  return type === 'enroll' ? 'enrollment of a new agent' : 'more scopes for an agent'
}

/** A request as text. The administrator compares the fingerprint with the one that the agent shows. */
export function describePending(request: PendingEnrollment, now: number): string {
  return listing({
    id: request.id,
    type: typeInWords(request),
    name: request.name,
    'name taken':
      request.name_taken === true ? 'by another agent: approve with --replace, or reject' : undefined,
    scopes: request.scopes.length === 0 ? '(none)' : request.scopes.join(', '),
    ...describeDifference(request),
    'key fingerprint': request.public_key_fingerprint ?? undefined,
    duration: request.expires_in,
    reason: request.reason,
    'why pending': request.note,
    warnings: request.warnings?.join(' '),
    ...describeMetadata(request),
    from: request.ip_address ?? undefined,
    requested: relative(request.created_at, now),
    expires: request.status === 'pending' ? relative(request.expires_at, now) : undefined,
    status: request.status,
    'decided by': request.decided_by,
    decided: request.decided_at === undefined ? undefined : relative(request.decided_at, now),
    note: request.decision_note,
  })
}

function describeMetadata({ type, metadata }: PendingEnrollment): Record<string, string | undefined> {
  if (metadata === null) return {}
  if (type !== 'claim') return { metadata: JSON.stringify(metadata) }
  const { platform, issuer, subject, claims, claims_left_out: leftOut } = metadata
  return {
    platform: String(platform),
    issuer: String(issuer),
    subject: String(subject),
    claims: JSON.stringify(claims),
    'claims left out': leftOut === undefined ? undefined : String(leftOut),
  }
}

/** What an approval of all requested scopes would change, and what the caller lacks for it. */
function describeDifference({ difference, missing_scopes: missing }: PendingEnrollment) {
  const named = (scopes: readonly string[] = []) => (scopes.length === 0 ? undefined : scopes.join(', '))
  return {
    'would gain': named(difference?.added),
    'has already': named(difference?.present),
    'cannot be given': named(difference?.impossible),
    'you lack': named(missing),
  }
}

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
      { hint: given === undefined ? undefined : 'List what is pending with `mayfly pending`.' },
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
