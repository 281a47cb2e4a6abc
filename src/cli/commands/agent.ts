import type { ChangeAgent, ChangedAgent } from '../../client/wire.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { AGENT_FILTERS, agentFilter } from '../admin/agent-filter.ts'
import { deliveryOf, describeAgent, FORM_OPTIONS, unknownAgent } from '../admin/created-agent.ts'
import { exactName } from '../admin/exact-name.ts'
import { requireKnown } from '../admin/require-known.ts'
import { ADMIN, arrayOf } from '../admin/verbs.ts'
import { noteWarnings } from '../admin/warnings.ts'
import { usage } from '../frame/failure.ts'
import { LIST_OPTIONS, showList } from '../frame/list.ts'
import { flag, many, off, text, type ValuesOf, yesTo } from '../frame/options.ts'
import { table } from '../frame/output.ts'
import { confirmed } from '../frame/prompt.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

const agentSchema = async () => (await import('../../api/admin.ts')).Agent
const AGENT = { name: '<name>', description: 'the agent', values: 'agents' } as const

export const create = defineVerb({
  description:
    'Creates an agent and prints its token and client secret, which cannot be shown again. An agent that runs `mayfly enroll` instead creates a key of its own, and needs no secret from you.',
  arguments: [{ name: '<name>', description: 'name of the agent' }],
  options: {
    scope: many('<scope>', 'a scope of the agent; may be repeated'),
    expiresIn: text('<duration>', 'lifetime of the agent'),
    audience: many('<audience>', 'another audience it may request tokens for; may be repeated'),
    description: text('<text>', 'what the agent is for'),
    owner: text('<text>', 'who answers for the agent; by default you'),
    ...FORM_OPTIONS,
  },
  examples: {
    "mayfly agent create ci-42 --scope 'orders:read' --expires-in 8h": 'one scope, for a working day',
    "mayfly agent create ci-42 --scope 'github:*' --write ci-42.json":
      'write its secrets to a file that only you can read',
    'export MAYFLY_TOKEN=$(mayfly agent create tmp --scope demo:read -o field=token)':
      'put its token into a variable',
  },
  json: async () => (await import('../../api/admin.ts')).CreatedAgent,
  ...ADMIN,
  run: async (context, options, name) => {
    const deliver = await deliveryOf(context, options)
    const { scope, expiresIn, audience, description, owner } = options
    const client = await openAdminClient(context)
    const body = { name, scopes: scope ?? [], expires_in: expiresIn, audiences: audience, description, owner }
    const made = await client.admin.agents.create(body).catch((error: unknown) => {
      if (context.signal.aborted || (error as { mayHaveArrived?: unknown }).mayHaveArrived === true)
        context.out.note(
          `Check with \`mayfly agent show ${name}\` whether the agent was created. If so, its secrets are lost.`,
        )
      throw error
    })
    try {
      context.signal.throwIfAborted()
      await deliver(made)
    } catch (error) {
      await takeBack(context, made.name)
      throw error
    }
    if (!context.out.isJson) noteWarnings(context, made)
  },
})

/** Deletes an agent whose secrets nobody received: best effort, within a time limit of its own. */
async function takeBack(context: Context, name: string): Promise<void> {
  const client = await openAdminClient({ ...context, signal: AbortSignal.timeout(1_500) })
  await client.admin.agents.delete(name).then(
    () =>
      context.out.note(`The agent ${name} was deleted again, because its secrets could not be delivered.`),
    () =>
      context.out.note(
        `The agent ${name} exists, but its secrets are lost. Delete it with \`mayfly agent rm ${name}\`.`,
      ),
  )
}

export const list = defineVerb({
  description: 'Lists the agents, oldest first: all, or those that every condition holds for.',
  arguments: [
    { name: '[pattern]', description: 'only these names; * stands for any text', values: 'agents' },
  ],
  options: { ...AGENT_FILTERS, ...LIST_OPTIONS },
  examples: {
    'mayfly agent ls': 'all of them',
    "mayfly agent ls 'ci-*' --backend orders": 'those that may use a backend',
    'mayfly agent ls --unused-for 30d': 'those that nobody has used for a month',
    'mayfly agent ls --expires-within 7d': 'those that end within a week',
  },
  json: arrayOf(agentSchema),
  ...ADMIN,
  run: async (context, options, pattern) => {
    const client = await openAdminClient(context)
    const isWanted = await agentFilter(options, pattern, context.now())
    const seen = { all: 0, wanted: 0, isWhole: false }
    async function* read(page: { readonly limit: number }) {
      for await (const agent of client.admin.agents.list(isWanted === undefined ? page : { limit: 1000 })) {
        seen.all += 1
        if (isWanted?.(agent) === false) continue
        seen.wanted += 1
        yield agent
      }
      seen.isWhole = true
    }
    await showList(context, options, read, {
      things: 'agents',
      none: isWanted === undefined ? 'No agents yet.' : 'No agent matches.',
      onNone: () => requireKnown(client, { backend: options.backend }),
      heading: ['NAME', 'SCOPES', 'EXPIRES', 'LAST USED', 'POLICY', 'OWNER'],
      cells: (row) => [
        row.name,
        row.scopes.join(' '),
        relative(row.expires_at ?? 'never', context.now()),
        relative(row.last_used ?? 'never', context.now()),
        row.policy ?? '',
        row.owner,
      ],
    })
    if (isWanted !== undefined && seen.isWhole && seen.wanted > 0 && !context.out.isJson)
      context.out.note(`${seen.wanted} of ${seen.all} agents match.`)
  },
})

export const show = defineVerb({
  description: 'Shows an agent.',
  arguments: [AGENT],
  examples: { 'mayfly agent show ci-42': 'its scopes, expiry and last use' },
  json: agentSchema,
  ...ADMIN,
  run: async (context, _options, name) => {
    const agent = await (await openAdminClient(context)).admin.agents.show(name).catch(unknownAgent)
    await context.out.show(agent, () => describeAgent(agent, context.now()))
  },
})

const OPTIONS = {
  addScope: many('<scope>', 'grant this scope, too; may be repeated'),
  removeScope: many('<scope>', 'take this scope away, as `mayfly agent show` lists it; may be repeated'),
  scope: many('<scope>', 'replace all scopes with this one; may be repeated'),
  expiresIn: text('<duration>', 'new lifetime, from now'),
  expiresAt: text('<time>', 'new expiry, such as 2027-01-31T12:00:00Z'),
  noExpiry: off('the agent does not expire'),
  audience: many('<audience>', 'replace the audiences it may request tokens for; may be repeated'),
  noAudiences: off('take all audiences away'),
  description: text('<text>', 'what the agent is for; empty removes it'),
  owner: text('<text>', 'who answers for the agent; empty: who created it'),
  revoke: flag('revoke the credentials that its scopes no longer cover'),
}

type Options = ValuesOf<typeof OPTIONS>

export const update = defineVerb({
  description:
    'Changes an agent at once, on all nodes. Omitted settings stay unchanged. Lists the credentials that the new scopes no longer cover, or revokes them with --revoke.',
  arguments: [AGENT],
  options: OPTIONS,
  examples: {
    'mayfly agent update ci-42 --add-scope shop-db:orders:read': 'grant one more scope',
    'mayfly agent update ci-42 --remove-scope shop-db --revoke':
      'take one away, and end what was issued under it',
    'mayfly agent update ci-42 --expires-in 30d': 'let it live for another month',
  },
  json: async () => (await import('../../api/admin.ts')).ChangedAgent,
  ...ADMIN,
  run: async (context, options, name) => {
    const body = bodyOf(options)
    const client = await openAdminClient(context)
    const changed = await client.admin.agents.update(name, body).catch(unknownAgent)
    await context.out.show(changed, () => describeAgent(changed, context.now()))
    if (!context.out.isJson) {
      noteWarnings(context, changed)
      noteBeyond(context, changed)
    }
  },
})

/** Throws `CliError` (usage). */
function bodyOf(options: Options): ChangeAgent {
  const { addScope, removeScope, scope, expiresIn, expiresAt, audience, description, owner, revoke } = options
  if (scope !== undefined && (addScope ?? removeScope) !== undefined)
    throw usage('--scope replaces all scopes.', 'Omit --add-scope and --remove-scope.')
  if (
    [expiresIn, expiresAt, options.expiry === false ? '' : undefined].filter((one) => one !== undefined)
      .length > 1
  )
    throw usage('--expires-in, --expires-at and --no-expiry are mutually exclusive.')
  if (audience !== undefined && options.audiences === false)
    throw usage('--audience and --no-audiences are mutually exclusive.')
  const body: ChangeAgent = {
    scopes: scope,
    add_scopes: addScope,
    remove_scopes: removeScope,
    expires_in: expiresIn,
    expires_at: options.expiry === false ? null : expiresAt,
    audiences: options.audiences === false ? [] : audience,
    description,
    owner,
    revoke,
  }
  if (Object.values(body).some((value) => value !== undefined)) return body
  throw usage('There is nothing to change.', 'List the options with `mayfly agent update --help`.')
}

function noteBeyond(context: Context, { name, out_of_scope: beyond = [] }: ChangedAgent): void {
  const { note } = context.out
  if (beyond.length === 0) return
  const isRevoked = beyond.every(({ status }) => status === 'revoked')
  note(
    isRevoked
      ? 'Revoked, because its scopes no longer cover them:'
      : 'Still active, although its scopes no longer cover them:',
  )
  note(
    table(
      ['CREDENTIAL', 'BACKEND', 'SCOPES', 'EXPIRES'],
      beyond.map((one) => [
        one.id,
        one.backend,
        one.scopes.join(' '),
        relative(one.expires_at, context.now()),
      ]),
    ),
  )
  if (!isRevoked) note(`Revoke them with \`mayfly agent update ${name} --revoke\`.`)
}

export const rotate = defineVerb({
  description:
    'Replaces the token and the client secret of an agent and prints the new ones, which cannot be shown again. The old ones, and the access tokens that came from them, stop working at once, or after --grace. The agent keeps its id, scopes, credentials and keys.',
  arguments: [AGENT],
  options: {
    grace: text('<duration>', 'how long the old ones stay valid; by default not at all'),
    ...FORM_OPTIONS,
    ...yesTo('do not ask for confirmation'),
  },
  examples: {
    'mayfly agent rotate ci-42 --yes': 'after its token leaked',
    'mayfly agent rotate ci-42 --grace 1h --write ci-42.json --yes':
      'leave an hour to replace the token where it is used',
  },
  json: async () => (await import('../../api/admin.ts')).RotatedAgent,
  ...ADMIN,
  run: async (context, { grace, yes, ...options }, name) => {
    const deliver = await deliveryOf(context, options)
    const client = await openAdminClient(context)
    const agent = await client.admin.agents.show(name).catch(unknownAgent)
    const when = grace === undefined ? 'now' : `in ${grace}`
    const question = `Replace the token and client secret of ${agent.name}? The old ones end ${when}.`
    const otherwise = 'Use --yes to replace them without a question.'
    await confirmed(context, yes, question, { otherwise, no: 'Nothing was changed.' })
    const again = `If nobody has the new secrets, run \`mayfly agent rotate ${shellWord(agent.name)}\` again.`
    const rotated = await client.admin.agents.rotate(agent.name, { grace }).catch((error: unknown) => {
      const isUnsure = context.signal.aborted || (error as { mayHaveArrived?: unknown }).mayHaveArrived
      if (isUnsure === true) context.out.note(`The secrets may have been replaced. ${again}`)
      throw error
    })
    try {
      context.signal.throwIfAborted()
      await deliver(rotated)
    } catch (error) {
      context.out.note(`The secrets were replaced. ${again}`)
      throw error
    }
    const until = rotated.previous_valid_until
    if (until !== null && !context.out.isJson) context.out.note(`The old ones are valid until ${until}.`)
  },
})

export const remove = defineVerb({
  description: 'Deletes an agent. Its login stops working at once, and all its credentials are revoked.',
  arguments: [AGENT],
  options: { ...yesTo('do not ask for confirmation') },
  examples: {
    'mayfly agent rm ci-42': 'ask, then delete it',
    'mayfly agent rm ci-42 --yes': 'without asking',
  },
  json: '{"deleted": "NAME"}',
  ...ADMIN,
  run: async (context, options, name) => {
    const client = await openAdminClient(context)
    const exact = await exactName(name, client.admin.agents.show(name).catch(unknownAgent))
    const question = `Delete the agent ${exact} and revoke all its credentials?`
    const otherwise = 'Use --yes to delete it without a question.'
    await confirmed(context, options.yes, question, { otherwise, no: 'Nothing was deleted.' })
    await client.admin.agents.delete(exact).catch(unknownAgent)
    await context.out.show({ deleted: exact }, () => `Deleted ${exact}.`)
  },
})
