import type { Client } from '../../client/client.ts'
import type { RevokedCredential } from '../../client/wire.ts'
import { usage } from '../frame/failure.ts'
import { defineVerb } from '../frame/verb.ts'
import { dropCached } from '../session/credential-cache.ts'
import { openAgentClient } from '../session/open.ts'

interface Options {
  all?: boolean
  backend?: string
}

export const verb = defineVerb<Options, [ids: string[]]>({
  description:
    'Ends credentials of the agent before their time. Those that have ended already are no error. All are tried, also when one fails.',
  arguments: [{ name: '[ids...]', description: 'ids of credentials; see `mayfly active`' }],
  options: [
    { flags: '--all', description: 'all that the agent holds' },
    { flags: '--backend <name>', description: 'all that the agent holds of this backend' },
  ],
  examples: [
    { command: 'mayfly revoke cred_01…', about: 'one credential' },
    { command: 'mayfly revoke --backend github', about: 'all of one backend' },
    { command: 'mayfly revoke --all', about: 'all that I hold' },
  ],
  json: 'array of {id, revoked, revoked_at, upstream: revoked, pending or expires}',
  exits: [3, 4],
  run: async (context, { all, backend }, ids) => {
    const ways = [ids.length > 0, all === true, backend !== undefined].filter(Boolean).length
    if (ways !== 1) throw usage('Give ids, --all or --backend, and only one of them.')
    const client = await openAgentClient(context)
    const wanted = ids.length > 0 ? ids : await heldIds(client, backend)
    const done: RevokedCredential[] = []
    let failure: unknown
    for (const id of wanted) {
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
  },
})

async function heldIds(client: Client, backend: string | undefined): Promise<string[]> {
  const ids: string[] = []
  for await (const one of client.active({ limit: 1000 })) {
    // Names are one whatever their case, as at the server.
    if (backend === undefined || one.backend.toLowerCase() === backend.toLowerCase()) ids.push(one.id)
  }
  return ids
}

function inWords({ id, upstream }: RevokedCredential): string {
  switch (upstream) {
    case 'revoked':
      return `Revoked ${id}.`
    case 'pending':
      return `Revoked ${id}; the upstream system is being told.`
    default:
      return `Revoked ${id} here; the upstream system honours it until it expires.`
  }
}
