import type { Client } from '../../client/client.ts'
import type { RevokedCredential } from '../../client/wire.ts'
import { requireBackend } from '../admin/require-known.ts'
import { usage } from '../frame/failure.ts'
import { flag, text, yesTo } from '../frame/options.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { dropCached } from '../session/credential-cache.ts'
import { openAgentSession } from '../session/open.ts'

export const verb = defineVerb({
  description:
    'Revokes credentials before they expire. Revoking one that has ended is no error. If one fails, it still revokes the others. An administrator may give ids of any agent: with a login that has the scope, or as the local administrator, without a login or with --data-dir. --agent and --all-agents revoke those of others: it counts them first, and asks.',
  arguments: [{ name: '[ids...]', description: 'ids from `mayfly credentials ls`', values: 'credentials' }],
  options: {
    all: flag('all your credentials'),
    backend: text('<name>', 'all your credentials of this backend', { values: 'backends' }),
    agent: text('<name>', 'all credentials of this agent, by name or id; with --backend, those of both', {
      values: 'agents',
    }),
    allAgents: flag('with --backend: those of all agents'),
    ...yesTo('do not ask for confirmation'),
  },
  examples: {
    'mayfly revoke cred_01…': 'one credential',
    'mayfly revoke --backend github': 'all of one backend',
    'mayfly revoke --all': 'all credentials',
    'mayfly revoke --agent ci-42 --yes': 'all that an agent holds, without asking',
    'mayfly revoke --backend orders --all-agents': 'all that anybody holds of a backend',
  },
  json: 'array of {id, revoked, revoked_at, upstream: revoked, pending or expires}; of other agents, {id, agent_name, backend, revoked, upstream}',
  admin: true,
  exits: [3, 4, 5],
  run: async (context, options, ids) => {
    const { all, backend, agent, allAgents } = options
    const isOfOthers = agent !== undefined || allAgents === true
    const ways = [ids.length > 0, all === true, backend !== undefined || agent !== undefined].filter(Boolean)
    if (ways.length !== 1) throw usage('Give exactly one of: ids, --all, --backend, --agent.')
    if (allAgents === true && (agent !== undefined || backend === undefined))
      throw usage('--all-agents goes with --backend, and without --agent.')
    if (isOfOthers) {
      const { revokeOfOthers } = await import('../admin/revoke-of-others.ts')
      return revokeOfOthers(context, { agent, backend }, options.yes)
    }
    return revokeEach(context, ids, backend)
  },
})

/** Revokes these ids; without any, all of the agent's own, or those of a backend. */
async function revokeEach(
  context: Context,
  ids: readonly string[],
  backend: string | undefined,
): Promise<void> {
  const client = ids.length > 0 ? await openForIds(context) : (await openAgentSession(context)).client
  const wanted = ids.length > 0 ? ids : await heldIds(client, backend)
  // "Nothing to revoke" must not be the answer to a typo.
  if (backend !== undefined && wanted.length === 0) await requireBackend(client, backend)
  const done: RevokedCredential[] = []
  let failure: unknown
  for (const [index, id] of wanted.entries()) {
    context.out.progress(`Revoking: ${index + 1} of ${wanted.length}`)
    try {
      done.push(await client.revoke(id))
    } catch (error) {
      context.signal.throwIfAborted()
      context.out.note(`mayfly: ${id} was not revoked.`)
      failure ??= error
    }
  }
  await dropCached(context, (credential) => done.some(({ id }) => id === credential.id))
  await context.out.report(done, done.map(inWords).join('\n') || 'There was nothing to revoke.')
  if (failure !== undefined) throw failure
}

/** The login decides whose credentials it may revoke; without one, the local administrator may revoke any. */
async function openForIds(context: Context): Promise<Client> {
  const { openAdminClient, openOwnClient } = await import('../session/admin.ts')
  return (await openOwnClient(context)) ?? openAdminClient(context)
}

async function heldIds(client: Client, backend: string | undefined): Promise<string[]> {
  const ids: string[] = []
  for await (const one of client.active({ limit: 1000 })) {
    // Like the server, ignore case.
    if (backend === undefined || one.backend.toLowerCase() === backend.toLowerCase()) ids.push(one.id)
  }
  return ids
}

function inWords({ id, upstream }: RevokedCredential): string {
  switch (upstream) {
    case 'revoked':
      return `Revoked ${id}.`
    case 'pending':
      return `Revoked ${id}; the server is still revoking it upstream.`
    default:
      return `Revoked ${id} here; upstream accepts it until it expires.`
  }
}
