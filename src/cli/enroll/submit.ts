import { type Client, MayflyError, type Reply } from '../../client/client.ts'
import type { Enrolled } from '../../client/wire.ts'
import { noteWarnings } from '../admin/warnings.ts'
import type { Context } from '../frame/verb.ts'
import { publicHalf, removeUnderway, saveUnderway, type Underway } from './underway.ts'

export type Submitted = Underway & { readonly enrollment: NonNullable<Underway['enrollment']> }

export function isSubmitted(underway: Underway): underway is Submitted {
  return underway.enrollment !== undefined
}

/**
 * Submits the enrollment and stores its id. The server returns the same enrollment to the same key, so after a lost
 * reply we submit again. Drops an enrollment that the server refuses for good.
 */
export async function submit(
  context: Context,
  client: Client,
  profileName: string,
  underway: Underway,
): Promise<Submitted> {
  const { name, scopes, metadata } = underway.request
  const body = { name, public_key: publicHalf(underway), scopes, metadata }
  const reply = await client
    .call<Enrolled>({ method: 'POST', path: '/v1/enroll', body, retry: 'always' })
    .catch(async (error: unknown) => {
      if (isFinal(error)) await removeUnderway(context, profileName)
      throw error
    })
  const { id, expires_at, poll_interval_ms, warnings } = checked(reply)
  if (!context.out.isJson) noteWarnings(context, { warnings })
  const submitted = { ...underway, enrollment: { id, expires_at, poll_ms: poll_interval_ms } }
  await saveUnderway(context, profileName, submitted)
  return submitted
}

/** Validates the reply: an administrator copies the id into a command line. Throws `MayflyError`. */
function checked({ status, body }: Reply<Enrolled>): Enrolled {
  const isWhole =
    /^enr_[0-9a-z]{26}$/.test(body?.id) &&
    Number.isFinite(Date.parse(body.expires_at)) &&
    Number.isSafeInteger(body.poll_interval_ms)
  if (isWhole) return body
  const message = 'What answered does not look like a Mayfly server.'
  throw new MayflyError({ code: 'unexpected_reply', status, message })
}

/** The server stored nothing and will not. */
export function isFinal(error: unknown): boolean {
  return error instanceof MayflyError && error.status < 500 && error.status !== 429 && error.status !== 409
}
