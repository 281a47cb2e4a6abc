import type { Client } from '../../client/client.ts'
import type { PendingEnrollment } from '../../client/wire.ts'
import { CliError } from '../frame/failure.ts'
import { listing } from '../frame/output.ts'

type Status = PendingEnrollment['status']
const STATUSES: readonly Status[] = ['pending', 'approved', 'rejected', 'expired']

/** Of this status, or of any. Throws `CliError` when there is none. */
export async function findRequest(client: Client, id: string, status?: Status): Promise<PendingEnrollment> {
  for (const one of status === undefined ? STATUSES : [status])
    for await (const request of client.admin.pending.list({ status: one }, { limit: 1000 }))
      if (request.id === id) return request
  throw new CliError('enrollment_not_found', 'There is no such enrollment or request.', {
    hint: 'See what waits with `mayfly pending`.',
  })
}

/** One that may still be decided. Throws `CliError` when it is not there, or decided already. */
export async function findUndecided(client: Client, id: string): Promise<PendingEnrollment> {
  const request = await findRequest(client, id)
  if (request.status === 'pending') return request
  const { status, decided_by: by } = request
  throw new CliError(
    status === 'expired' ? 'gone' : 'conflict',
    status === 'expired'
      ? 'This has expired.'
      : `This is ${status} already${by === undefined ? '' : `, by ${by}`}.`,
    { hint: status === 'expired' ? 'It must be asked for again.' : 'See what waits with `mayfly pending`.' },
  )
}

/** For people, who compare the fingerprint with the one that the agent shows. */
export function describePending(request: PendingEnrollment): string {
  return listing({
    id: request.id,
    what: request.type === 'enroll' ? 'enrollment of a new agent' : 'more scopes for an agent',
    name: request.name,
    scopes: request.scopes.length === 0 ? '(none)' : request.scopes.join(', '),
    'key fingerprint': request.public_key_fingerprint ?? undefined,
    'for how long': request.expires_in,
    reason: request.reason,
    'why it waits': request.note,
    metadata: request.metadata === null ? undefined : JSON.stringify(request.metadata),
    from: request.ip_address ?? undefined,
    asked: request.created_at,
    'open until': request.status === 'pending' ? request.expires_at : undefined,
    status: request.status,
    'decided by': request.decided_by,
    'decided at': request.decided_at,
    note: request.decision_note,
  })
}
