import type { Client } from '../../client/client.ts'
import type { ActiveCredential, CredentialFilter, Token } from '../../client/wire.ts'
import { requireBackend, requireKnown } from '../admin/require-known.ts'
import { ADMIN, FILTERS } from '../admin/verbs.ts'
import { LIST_OPTIONS, type Rows, showList } from '../frame/list.ts'
import { choice, flag, text, type ValuesOf } from '../frame/options.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdminClient, openOwnClient } from '../session/admin.ts'

const STATUSES = ['active', 'expired', 'revoked', 'all'] as const

type Filter = ValuesOf<typeof FILTERS & typeof LIST_OPTIONS> & {
  readonly run?: string | undefined
  readonly status?: (typeof STATUSES)[number] | undefined
}

export const list = defineVerb({
  description:
    'Lists your active credentials, oldest first. Without a login, and with --data-dir, --all-agents, --agent, --run or --status, it lists those of all agents, newest first, which needs an administrator. Secrets are never shown.',
  options: {
    ...FILTERS,
    run: text('<id>', 'only what was issued for this run', { values: 'runs' }),
    status: choice('<status>', 'only this status, of all agents; active by default', STATUSES),
    allAgents: flag('of all agents, even if you have a login'),
    ...LIST_OPTIONS,
  },
  examples: {
    'mayfly credentials ls': 'what you hold',
    "mayfly credentials ls --json | jq -r '.[].id'": 'only the ids',
    'mayfly credentials ls --agent ci-42 --status all': 'what an agent holds and held',
  },
  json: 'array of {id, backend, created_at, expires_at}; of all agents, also {agent_id, agent_name, scopes, status, upstream (optional)}',
  ...ADMIN,
  run: async (context, options) => {
    const { allAgents, agent, run, status } = options
    const isOfAll = allAgents === true || [agent, run, status].some((one) => one !== undefined)
    const own = isOfAll ? undefined : await openOwnClient(context)
    return own === undefined ? listAll(context, options) : listOwn(context, own, options)
  },
})

function listOwn(context: Context, client: Client, options: Filter): Promise<void> {
  const wanted = options.backend?.toLowerCase()
  async function* read(page: { readonly limit: number }) {
    // The server ignores case, too.
    for await (const row of client.active(wanted === undefined ? page : { limit: 1000 }))
      if (wanted === undefined || row.backend.toLowerCase() === wanted) yield row
  }
  const { now } = context
  const shape: Rows<ActiveCredential> = {
    things: 'active credentials',
    none: 'No active credentials.',
    onNone: async () => {
      if (options.backend !== undefined) await requireBackend(client, options.backend)
    },
    heading: ['CREDENTIAL', 'BACKEND', 'CREATED', 'EXPIRES'],
    cells: (row) => [row.id, row.backend, relative(row.created_at, now()), relative(row.expires_at, now())],
  }
  return showList(context, options, read, shape)
}

async function listAll(context: Context, options: Filter): Promise<void> {
  const { backend, agent, run, status = 'active' } = options
  const client = await openAdminClient(context)
  const filter: CredentialFilter = { backend, agent, run, status: status === 'all' ? undefined : status }
  const kept = status === 'all' ? '' : `${status} `
  const { now } = context
  const shape: Rows<Token> = {
    things: `${kept}credentials`,
    none: `No ${kept}credentials.`,
    onNone: () => requireKnown(client, { agent, backend }),
    heading: ['CREDENTIAL', 'AGENT', 'BACKEND', 'SCOPES', 'STATUS', 'EXPIRES'],
    cells: (row) => [
      row.id,
      row.agent_name,
      row.backend,
      row.scopes.join(' '),
      row.upstream === 'pending' ? { text: `${row.status}, pending upstream`, colour: 'yellow' } : row.status,
      relative(row.expires_at, now()),
    ],
  }
  return showList(context, options, (page) => client.admin.tokens.list(filter, page), shape)
}
