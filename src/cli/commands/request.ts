import type { Client } from '../../client/client.ts'
import { coversAny } from '../../domain/scope.ts'
import { CliError, EXIT } from '../frame/failure.ts'
import { pause } from '../frame/pause.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAgentClient } from '../session/open.ts'

interface Options {
  reason?: string
  expiresIn?: string
  wait?: boolean
}

export const verb = defineVerb<Options, [scopes: string[]]>({
  description: 'Asks an administrator for more scopes, for good or for a while.',
  arguments: [{ name: '<scopes...>', description: 'scopes, such as github:my-org/my-repo:write' }],
  options: [
    { flags: '--reason <text>', description: 'why; the administrator reads it' },
    { flags: '--expires-in <duration>', description: 'for how long, such as 8h' },
    { flags: '--wait', description: 'until it is decided' },
  ],
  examples: [
    {
      command: "mayfly request reports:write --reason 'monthly close' --expires-in 8h",
      about: 'for one day',
    },
    { command: 'mayfly request reports:write --wait && make release', about: 'go on once it is approved' },
  ],
  json: '{id, status, scopes, reason, expires_in, created_at, expires_at}; with --wait the status is approved',
  exits: [3, 4, 5],
  run: async (context, { reason, expiresIn, wait }, scopes) => {
    const client = await openAgentClient(context)
    const asked = await client.requestScopes({
      scopes,
      ...(reason === undefined ? {} : { reason }),
      ...(expiresIn === undefined ? {} : { expires_in: expiresIn }),
    })
    if (wait !== true) {
      const next = `An administrator decides: mayfly approve ${asked.id}`
      await context.out.report(asked, `Asked for ${scopes.join(' ')}. ${next}`)
      return
    }
    context.out.note(`Request ${asked.id} waits. An administrator decides: mayfly approve ${asked.id}`)
    await untilDecided(context, client, asked.id, scopes)
    await context.out.report({ ...asked, status: 'approved' }, `Approved: ${scopes.join(' ')}`)
  },
})

const POLL_MS = 2_000

/** Resolves when it is approved. Throws `CliError` (refused) when it is rejected or has expired. */
async function untilDecided(
  context: Context,
  client: Client,
  id: string,
  scopes: readonly string[],
): Promise<void> {
  const began = context.now()
  for (;;) {
    const { pending_requests } = await client.status()
    if (!pending_requests.some((one) => one.id === id)) {
      // This answer may have the scopes of just before the decision.
      const held = (await client.status()).scopes
      if (scopes.every((scope) => coversAny(held, scope))) return
      throw new CliError(
        'request_rejected',
        `Request ${id} was rejected, has expired, or was approved in part.`,
        {
          exit: EXIT.refused,
          hint: 'See what you may do with `mayfly status`, and ask the administrator.',
        },
      )
    }
    context.out.progress(
      `Waiting for the decision on ${id}, ${Math.round((context.now() - began) / 1_000)} s`,
    )
    await pause(POLL_MS, context.signal)
  }
}
