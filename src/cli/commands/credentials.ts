import type { Client } from '../../client/client.ts'
import type { ActiveCredential, CredentialFilter, Token } from '../../client/wire.ts'
import { requireBackend, requireKnown } from '../admin/require-known.ts'
import { ADMIN, FILTERS } from '../admin/verbs.ts'
import { LIST_OPTIONS, type Rows, showList } from '../frame/list.ts'
import { choice, flag, type ValuesOf } from '../frame/options.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdmin, openAdminClient } from '../session/admin.ts'
import { clientFor } from '../session/open.ts'
import { findLogin, readTarget } from '../session/session.ts'

const STATUSES = ['active', 'expired', 'revoked', 'all'] as const

type Filter = ValuesOf<typeof FILTERS & typeof LIST_OPTIONS> & {
  readonly status?: (typeof STATUSES)[number] | undefined
}

export const list = defineVerb({
  description:
    'Lists your active credentials, oldest first. Without a login, on the server’s machine, and with --all-agents, --agent or --status it lists those of all agents, newest first, which needs an administrator. Secrets are never shown.',
  options: {
    ...FILTERS,
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
    const { allAgents, agent, status } = options
    const isOfAll = allAgents === true || agent !== undefined || status !== undefined
    const own = isOfAll ? undefined : await ownClient(context)
    return own === undefined ? listAll(context, options) : listOwn(context, own, options)
  },
})

/** Undefined if there is no login. */
async function ownClient(context: Context): Promise<Client | undefined> {
  const target = await readTarget(context)
  const login = await findLogin(context, target)
  return login === undefined ? undefined : clientFor(context, target, login.auth)
}

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
  const { backend, agent, status = 'active' } = options
  const client = await openAdminClient(context)
  const filter: CredentialFilter = { backend, agent, status: status === 'all' ? undefined : status }
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

export const revoke = defineVerb({
  description:
    'Revokes credentials of any agent, as an administrator; with a login that is none, your own. `mayfly revoke` revokes all of yours, or those of a backend.',
  arguments: [{ name: '<ids...>', description: 'ids from `mayfly credentials ls`', values: 'credentials' }],
  examples: { 'mayfly credentials revoke cred_01k3vq8m5xn6w7r2t9y4u1i0pa': 'revoke one credential' },
  json: '{"revoked": ["ID", …]}',
  ...ADMIN,
  run: async (context, _options, ids) => {
    const { client, login } = await openAdmin(context)
    for (const [index, id] of ids.entries()) {
      context.out.progress(`Revoking: ${index + 1} of ${ids.length}`)
      const revoked = login === undefined ? client.admin.tokens.revoke(id) : client.revoke(id)
      await revoked.catch((error: unknown) => {
        if (index > 0) context.out.note(`Revoked before the error: ${ids.slice(0, index).join(', ')}.`)
        throw error
      })
    }
    await context.out.show({ revoked: ids }, () => ids.map((id) => `Revoked ${id}.`).join('\n'))
  },
})
