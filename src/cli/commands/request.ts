import { pause } from '../../client/abort.ts'
import type { Client } from '../../client/client.ts'
import type { RequestedScopes } from '../../client/wire.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { coversAny } from '../../domain/scope.ts'
import { noteWarnings } from '../admin/warnings.ts'
import { CliError, EXIT } from '../frame/failure.ts'
import { flag, text } from '../frame/options.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAgentSession } from '../session/open.ts'

export const verb = defineVerb({
  description: 'Requests more scopes from an administrator, permanently or for a while.',
  arguments: [{ name: '<scopes...>', description: 'scopes, such as github:my-org/my-repo:write' }],
  options: {
    reason: text('<text>', 'why, for the administrator'),
    expiresIn: text('<duration>', 'how long you need them, such as 8h'),
    wait: flag('wait for the decision'),
  },
  examples: {
    "mayfly request reports:write --reason 'monthly close' --expires-in 8h": 'for one day',
    'mayfly request reports:write --wait && make release': 'continue once it is approved',
  },
  json: '{id, status, scopes, reason, expires_in, created_at, expires_at}; with --wait the status is approved',
  exits: [3, 4, 5],
  run: async (context, { reason, expiresIn, wait }, scopes) => {
    const { client } = await openAgentSession(context)
    const asked = await client.requestScopes({ scopes, reason, expires_in: expiresIn })
    if (!context.out.isJson) noteWarnings(context, asked)
    const next = `An administrator can approve it with: mayfly approve ${shellWord(asked.id)}`
    if (wait !== true) {
      await context.out.report(asked, `Requested ${scopes.join(' ')}. ${next}`)
      return
    }
    context.out.note(`Request ${asked.id} is pending. ${next}`)
    await untilDecided(context, client, asked.id, scopes)
    await context.out.report({ ...asked, status: 'approved' }, `Approved: ${scopes.join(' ')}`)
  },
})

const POLL_MS = 2_000

/** Waits for the approval. Throws `CliError` (refused) if the request is rejected, expires or is approved only in part. */
async function untilDecided(
  context: Context,
  client: Client,
  id: string,
  scopes: readonly string[],
): Promise<void> {
  const began = context.now()
  for (;;) {
    const request = await client.scopeRequest(id)
    if (request.status !== 'pending') return requireApproved(client, request, scopes)
    context.out.progress(
      `Waiting for the decision on ${id}, ${Math.round((context.now() - began) / 1_000)} s`,
    )
    await pause(POLL_MS, context.signal)
  }
}

async function requireApproved(
  client: Client,
  { id, status, decision_note: note }: RequestedScopes,
  scopes: readonly string[],
): Promise<void> {
  if (status === 'rejected')
    throw refused(
      'request_rejected',
      `Request ${id} was rejected${note === undefined ? '.' : `: ${note}`}`,
      'Ask the administrator.',
    )
  if (status === 'expired')
    throw refused(
      'request_expired',
      `Request ${id} has expired: nobody decided within a day.`,
      'Request it again.',
    )
  // The first answer may hold the scopes from just before the decision.
  await client.status()
  const held = (await client.status()).scopes
  if (scopes.every((scope) => coversAny(held, scope))) return
  throw refused(
    'request_approved_in_part',
    `Request ${id} was approved only in part.`,
    'Check your scopes with `mayfly status`, and ask the administrator.',
  )
}

const refused = (code: string, message: string, hint: string) =>
  new CliError(code, message, { exit: EXIT.refused, hint })
