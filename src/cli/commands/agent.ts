import { resolve } from 'node:path'
import type { CreateAgent } from '../../client/wire.ts'
import { createdForm, deliverSecrets, FORM_OPTIONS } from '../admin/created-agent.ts'
import { describeAgent, unknownAgent } from '../admin/describe-agent.ts'
import { exactName } from '../admin/exact-name.ts'
import { ADMIN, arrayOf } from '../admin/verbs.ts'
import { noteWarnings } from '../admin/warnings.ts'
import { usage } from '../frame/failure.ts'
import { LIST_OPTIONS, showList } from '../frame/list.ts'
import { many, text, yesTo } from '../frame/options.ts'
import { present } from '../frame/present.ts'
import { confirmed } from '../frame/prompt.ts'
import { relative } from '../frame/times.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'
import { isPresent } from '../session/private-file.ts'

export const create = defineVerb({
  description:
    'Creates an agent and prints its token and client secret, which cannot be shown again. An agent that runs `mayfly enroll` instead creates a key of its own, and needs no secret from you.',
  arguments: [{ name: '<name>', description: 'name of the agent' }],
  options: {
    scope: many('<scope>', 'a scope of the agent; may be repeated'),
    expiresIn: text('<duration>', 'lifetime of the agent'),
    audience: many('<audience>', 'another audience it may request tokens for; may be repeated'),
    description: text('<text>', 'what the agent is for'),
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
    const form = createdForm(context.out.isJson ? 'json' : (options.output ?? 'text'))
    const file = options.write === undefined ? undefined : resolve(context.cwd, options.write)
    // Before creating the agent, whose secrets cannot be shown again.
    if (file !== undefined && (await isPresent(file)))
      throw usage(`${options.write} already exists.`, 'Choose a new file, or move the old one away.')
    const { scope, expiresIn, audience, description } = options
    const client = await openAdminClient(context)
    const body = present<CreateAgent>({
      name,
      scopes: scope ?? [],
      expires_in: expiresIn,
      audiences: audience,
      description,
    })
    const made = await client.admin.agents.create(body).catch((error: unknown) => {
      if (context.signal.aborted || (error as { mayHaveArrived?: unknown }).mayHaveArrived === true)
        context.out.note(
          `Check with \`mayfly agent show ${name}\` whether the agent was created. If so, its secrets are lost.`,
        )
      throw error
    })
    try {
      context.signal.throwIfAborted()
      await deliverSecrets(context, made, form, file)
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

const agentSchema = async () => (await import('../../api/admin.ts')).Agent
const AGENT = { name: '<name>', description: 'the agent', values: 'agents' } as const

export const list = defineVerb({
  description: 'Lists the agents, oldest first.',
  options: LIST_OPTIONS,
  examples: {
    'mayfly agent ls': 'all of them',
  },
  json: arrayOf(agentSchema),
  ...ADMIN,
  run: async (context, options) => {
    const { admin } = await openAdminClient(context)
    await showList(context, options, admin.agents.list, {
      things: 'agents',
      none: 'No agents yet.',
      heading: ['NAME', 'SCOPES', 'EXPIRES', 'LAST USED', 'POLICY'],
      cells: (row) => [
        row.name,
        row.scopes.join(' '),
        relative(row.expires_at ?? 'never', context.now()),
        relative(row.last_used ?? 'never', context.now()),
        row.policy ?? '',
      ],
    })
  },
})

export const show = defineVerb({
  description: 'Shows an agent.',
  arguments: [AGENT],
  examples: {
    'mayfly agent show ci-42': 'its scopes, expiry and last use',
  },
  json: agentSchema,
  ...ADMIN,
  run: async (context, _options, name) => {
    const agent = await (await openAdminClient(context)).admin.agents.show(name).catch(unknownAgent)
    await context.out.show(agent, () => describeAgent(agent, context.now()))
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
