import type { Client } from '../../client/client.ts'
import type { Token } from '../../client/wire.ts'
import { confirmed } from '../frame/prompt.ts'
import type { Context } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'
import { requireKnown } from './require-known.ts'

interface Chosen {
  /** Name or id. */
  readonly agent?: string | undefined
  readonly backend?: string | undefined
}

/** Requests at once: the server asks the upstream before it answers, for up to three seconds. */
const AT_ONCE = 8

/**
 * Revokes every active credential of an agent, of a backend, or of both, as an administrator. It counts them, asks unless
 * `isSure`, and then goes on if one fails. What was revoked stays revoked when it is interrupted; the next run does the
 * rest. Throws the first failure in the end.
 */
export async function revokeOfOthers(
  context: Context,
  chosen: Chosen,
  isSure: boolean | undefined,
): Promise<void> {
  const { out } = context
  const client = await openAdminClient(context)
  const held: Token[] = []
  for await (const one of client.admin.tokens.list({ ...chosen, status: 'active' }, { limit: 1000 })) {
    held.push(one)
    if (held.length % 1000 === 0) out.progress(`Counting: ${held.length}`)
  }
  if (held.length === 0) {
    await requireKnown(client, chosen)
    await out.report([], `There was nothing to revoke: no active credentials of ${inWords(chosen)}.`)
    return
  }
  await confirmed(context, isSure, `Revoke ${counted(held)} of ${inWords(chosen)}?`, {
    otherwise: `It would revoke ${counted(held)}. Use --yes to revoke them without a question.`,
    no: 'Nothing was revoked.',
  })
  const { done, failure } = await revokeAll(context, client, held)
  const pending = done.filter(({ upstream }) => upstream === 'pending').length
  await out.report(
    done.map(({ id, agent_name, backend, upstream }) => ({
      id,
      agent_name,
      backend,
      revoked: true,
      ...(upstream === 'pending' ? { upstream } : {}),
    })),
    `Revoked ${counted(done)} of ${inWords(chosen)}.${
      pending === 0 ? '' : ` The server is still revoking ${pending} of them upstream.`
    }`,
  )
  if (failure !== undefined) throw failure
}

/** `3 credentials`, and of how many agents where that is not one. */
function counted(held: readonly Token[]): string {
  const agents = new Set(held.map(({ agent_id }) => agent_id)).size
  const number = held.length === 1 ? '1 credential' : `${held.length} credentials`
  return agents > 1 ? `${number} (${agents} agents)` : number
}

function inWords({ agent, backend }: Chosen): string {
  const parts = [
    ...(agent === undefined ? [] : [`agent ${agent}`]),
    ...(backend === undefined ? [] : [`backend ${backend}`]),
  ]
  return parts.join(' at ')
}

async function revokeAll(context: Context, client: Client, held: readonly Token[]) {
  const { out, signal } = context
  const done: Token[] = []
  const left = held.values()
  let failure: unknown
  const work = async () => {
    for (const one of left) {
      try {
        const { upstream } = await client.revoke(one.id)
        done.push({ ...one, upstream })
      } catch (error) {
        signal.throwIfAborted()
        out.note(`mayfly: ${one.id} was not revoked.`)
        failure ??= error
      }
      out.progress(`Revoking: ${done.length} of ${held.length}`)
    }
  }
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  } catch (error) {
    if (done.length > 0) out.note(`Revoked ${done.length} of ${held.length}. Run it again for the others.`)
    throw error
  }
  return { done, failure }
}
