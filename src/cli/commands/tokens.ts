import { collect } from '../frame/collect.ts'
import { usage } from '../frame/failure.ts'
import { table } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

type Status = 'active' | 'expired' | 'revoked'

interface ListOptions {
  readonly backend?: string
  readonly agent?: string
  readonly status?: Status
  readonly limit?: string
}

export const list = defineVerb<ListOptions>({
  description: 'Lists the credentials of all agents, newest first. Their secrets are never shown.',
  options: [
    { flags: '--backend <name>', description: 'only this backend' },
    { flags: '--agent <name>', description: 'only this agent, by name or id' },
    {
      flags: '--status <status>',
      description: 'only this status',
      choices: ['active', 'expired', 'revoked'],
    },
    { flags: '-n, --limit <number>', description: 'at most this many' },
  ],
  examples: [
    { command: 'mayfly tokens ls --status active', about: 'all active credentials' },
    { command: 'mayfly tokens ls --agent ci-42 --json', about: 'those of one agent, as JSON' },
  ],
  json: async () => {
    const [{ Type }, { Token }] = await Promise.all([import('typebox'), import('../../api/admin.ts')])
    return Type.Array(Token)
  },
  exits: [3, 4, 5],
  admin: true,
  run: async (context, options) => {
    const { backend, agent, status, limit } = options
    if (limit !== undefined && !/^[1-9]\d{0,8}$/.test(limit))
      throw usage('--limit must be a whole number, at least 1.', 'Write it in digits.')
    const most = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
    const client = await openAdminClient(context)
    const page = { limit: Math.min(most, 1000) }
    const rows = await collect(client.admin.tokens.list({ backend, agent, status }, page), most)
    await context.out.show(rows, () =>
      table(
        ['ID', 'AGENT', 'BACKEND', 'SCOPES', 'STATUS', 'EXPIRES'],
        rows.map((row) => [
          row.id,
          row.agent_name,
          row.backend,
          row.scopes.join(' '),
          row.upstream === 'pending' ? `${row.status}, pending upstream` : row.status,
          row.expires_at,
        ]),
      ),
    )
  },
})

export const revoke = defineVerb<object, [ids: readonly string[]]>({
  description: 'Revokes credentials of any agent.',
  arguments: [{ name: '<ids...>', description: 'ids from `mayfly tokens ls`' }],
  examples: [
    { command: 'mayfly tokens revoke cred_01k3vq8m5xn6w7r2t9y4u1i0pa', about: 'revoke one credential' },
  ],
  json: '{"revoked": ["ID", …]}',
  exits: [3, 4, 5],
  admin: true,
  run: async (context, _options, ids) => {
    const client = await openAdminClient(context)
    for (const [index, id] of ids.entries()) {
      await client.admin.tokens.revoke(id).catch((error: unknown) => {
        if (index > 0) context.out.note(`Revoked before the error: ${ids.slice(0, index).join(', ')}.`)
        throw error
      })
    }
    await context.out.show({ revoked: ids }, () => ids.map((id) => `Revoked ${id}.`).join('\n'))
  },
})
