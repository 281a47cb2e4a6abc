import { collect } from '../frame/collect.ts'
import { table } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAgentSession } from '../session/open.ts'

export const verb = defineVerb({
  description: 'Lists your active credentials, oldest first.',
  examples: [
    { command: 'mayfly active', about: 'list your credentials' },
    { command: "mayfly active --json | jq -r '.[].id'", about: 'only their ids' },
  ],
  json: 'array of {id, backend, created_at, expires_at}',
  exits: [3, 4],
  run: async (context) => {
    const { client } = await openAgentSession(context)
    const rows = await collect(client.active({ limit: 1000 }))
    await context.out.show(rows, () =>
      table(
        ['CREDENTIAL', 'BACKEND', 'CREATED', 'EXPIRES'],
        rows.map((row) => [row.id, row.backend, row.created_at, row.expires_at]),
      ),
    )
  },
})
