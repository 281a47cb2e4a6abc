import type { BackendInfo } from '../../client/wire.ts'
import { LIST_OPTIONS, showList } from '../frame/list.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAgentSession } from '../session/open.ts'

export const verb = defineVerb({
  description: 'Lists the backends that you can get credentials from, with their lifetimes.',
  options: LIST_OPTIONS,
  examples: { 'mayfly backends': 'what you can get' },
  json: 'array of {id, type, default_ttl, max_ttl, allowed_scopes, description, revocation, recovery, environment, scope_forms}',
  exits: [3, 4],
  run: async (context, options) => {
    const { client } = await openAgentSession(context)
    async function* read() {
      yield* await client.backends()
    }
    await showList<BackendInfo>(context, options, read, {
      things: 'backends',
      none: 'No backends.',
      heading: ['BACKEND', 'KIND', 'DEFAULT TTL', 'MAX TTL', 'REVOCATION', 'DESCRIPTION'],
      cells: (one) => [
        one.id,
        one.type,
        one.default_ttl,
        one.max_ttl,
        one.revocation === 'exact' ? 'at once' : 'by expiry',
        one.description ?? '',
      ],
    })
  },
})
