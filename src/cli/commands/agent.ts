import { resolve } from 'node:path'
import { createdForm, type Form } from '../admin/created-agent.ts'
import { collect } from '../frame/collect.ts'
import { CliError, usage } from '../frame/failure.ts'
import { listing, table } from '../frame/output.ts'
import { confirm } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'
import { isPresent, writePrivateFile } from '../session/private-file.ts'

interface CreateOptions {
  readonly scope?: readonly string[]
  readonly expiresIn?: string
  readonly audience?: readonly string[]
  readonly output?: string
  readonly write?: string
}

export const create = defineVerb<CreateOptions, [name: string]>({
  description:
    'Creates an agent and prints its token and its client secret, which are shown this once. With `mayfly enroll` an agent makes a key of its own instead, and no secret has to be carried to it.',
  arguments: [{ name: '<name>', description: 'its name' }],
  options: [
    { flags: '--scope <scope>', description: 'a scope of it; may be repeated', repeatable: true },
    { flags: '--expires-in <duration>', description: 'it ends after this time' },
    {
      flags: '--audience <audience>',
      description: 'an audience it may ask tokens for, beside those that all may; may be repeated',
      repeatable: true,
    },
    {
      flags: '-o, --output <form>',
      description: 'text, json, env (export lines), dotenv or field=NAME',
      default: 'text',
    },
    { flags: '--write <file>', description: 'write it as JSON to a new file, 0600, instead of printing it' },
  ],
  examples: [
    {
      command: "mayfly agent create ci-42 --scope 'orders:read' --expires-in 8h",
      about: 'for a working day, with one scope',
    },
    {
      command: "mayfly agent create ci-42 --scope 'github:*' --write ci-42.json",
      about: 'its secrets into a file for you alone',
    },
    {
      command: 'export MAYFLY_TOKEN=$(mayfly agent create tmp --scope demo:read -o field=token)',
      about: 'its token in a variable',
    },
  ],
  json: async () => (await import('../../api/admin.ts')).CreatedAgent,
  exits: [3, 4, 5],
  admin: true,
  run: async (context, options, name) => {
    const form = createdForm(context.out.isJson ? 'json' : (options.output ?? 'text'))
    const file = options.write === undefined ? undefined : resolve(context.cwd, options.write)
    // Before the agent is there: its secrets are shown once.
    if (file !== undefined && (await isPresent(file)))
      throw usage(`${options.write} is there already.`, 'Name a new file, or move the old one away.')
    const { scope, expiresIn, audience } = options
    const client = await openAdminClient(context)
    const body = {
      name,
      scopes: [...(scope ?? [])],
      ...(expiresIn === undefined ? {} : { expires_in: expiresIn }),
      ...(audience === undefined ? {} : { audiences: [...audience] }),
    }
    const made = await client.admin.agents.create(body).catch((error: unknown) => {
      if (context.signal.aborted || (error as { mayHaveArrived?: unknown }).mayHaveArrived === true)
        context.out.note(`Look with \`mayfly agent show ${name}\` whether it was made: its secrets are lost.`)
      throw error
    })
    try {
      context.signal.throwIfAborted()
      await deliver(context, made, form, file)
    } catch (error) {
      await takeBack(context, made.name)
      throw error
    }
  },
})

type Created = Parameters<Form>[0]

async function deliver(context: Context, made: Created, form: Form, file: string | undefined): Promise<void> {
  if (file === undefined) {
    await context.out.result(form(made))
    if (!context.out.isJson) context.out.note('The token and the client secret are not shown again.')
    return
  }
  await writePrivateFile(file, `${JSON.stringify(made, null, 2)}\n`)
  const { id, name, scopes, expires_at } = made
  await context.out.show({ id, name, scopes, expires_at, written_to: file }, () => `Written to ${file}.`)
}

/** Nobody has its secrets, so nobody can use it: it must not stay. Best effort, with its own time. */
async function takeBack(context: Context, name: string): Promise<void> {
  const client = await openAdminClient({ ...context, signal: AbortSignal.timeout(1_500) })
  await client.admin.agents.delete(name).then(
    () => context.out.note(`The agent ${name} was deleted again: its secrets could not be handed over.`),
    () =>
      context.out.note(
        `The agent ${name} is there without its secrets: delete it with \`mayfly agent rm ${name}\`.`,
      ),
  )
}

export const list = defineVerb({
  description: 'Lists the agents, oldest first.',
  examples: [{ command: 'mayfly agent ls', about: 'all of them' }],
  json: async () => {
    const [{ Type }, { Agent }] = await Promise.all([import('typebox'), import('../../api/admin.ts')])
    return Type.Array(Agent)
  },
  exits: [3, 4, 5],
  admin: true,
  run: async (context) => {
    const rows = await collect((await openAdminClient(context)).admin.agents.list())
    await context.out.show(rows, () =>
      table(
        ['NAME', 'SCOPES', 'EXPIRES', 'LAST USED', 'POLICY'],
        rows.map((row) => [
          row.name,
          row.scopes.join(' '),
          row.expires_at ?? 'never',
          row.last_used ?? 'never',
          row.policy ?? '',
        ]),
      ),
    )
  },
})

export const show = defineVerb<object, [name: string]>({
  description: 'Shows an agent.',
  arguments: [{ name: '<name>', description: 'the agent' }],
  examples: [{ command: 'mayfly agent show ci-42', about: 'its scopes, its end, when it was used last' }],
  json: async () => (await import('../../api/admin.ts')).Agent,
  exits: [3, 4, 5],
  admin: true,
  run: async (context, _options, name) => {
    const agent = await (await openAdminClient(context)).admin.agents.show(name).catch(unknownAgent)
    await context.out.show(agent, () =>
      listing({
        name: agent.name,
        id: agent.id,
        scopes: agent.scopes.join(', ') || '(none)',
        created: agent.created_at,
        expires: agent.expires_at ?? 'never',
        'last used': agent.last_used ?? 'never',
        audiences: agent.audiences?.join(' '),
        'admitted by': agent.policy === null ? undefined : `policy ${agent.policy}`,
      }),
    )
  },
})

export const remove = defineVerb<{ yes?: boolean }, [name: string]>({
  description: 'Deletes an agent: its login ends at once, and all its credentials are revoked.',
  arguments: [{ name: '<name>', description: 'the agent' }],
  options: [{ flags: '-y, --yes', description: 'do not ask' }],
  examples: [
    { command: 'mayfly agent rm ci-42', about: 'asks, then deletes it' },
    { command: 'mayfly agent rm ci-42 --yes', about: 'without asking' },
  ],
  json: '{"deleted": "NAME"}',
  exits: [3, 4, 5],
  admin: true,
  run: async (context, options, name) => {
    const client = await openAdminClient(context)
    const agent = await client.admin.agents.show(name).catch(unknownAgent)
    const question = `Delete the agent ${agent.name} and revoke all its credentials?`
    const otherwise = 'Give --yes to delete it without being asked.'
    if (options.yes !== true && !(await confirm(context, question, { otherwise })))
      throw new CliError('not_confirmed', 'Nothing was deleted.')
    await client.admin.agents.delete(agent.name)
    await context.out.show({ deleted: agent.name }, () => `Deleted ${agent.name}.`)
  },
})

function unknownAgent(error: unknown): never {
  if ((error as { code?: unknown }).code !== 'agent_not_found') throw error
  throw new CliError('agent_not_found', 'There is no such agent.', {
    hint: 'See them with `mayfly agent ls`.',
    cause: error,
  })
}
