import { ADMIN, arrayOf, FILTERS } from '../admin/verbs.ts'
import { CliError } from '../frame/failure.ts'
import { collect, LIST_OPTIONS, showList } from '../frame/list.ts'
import { flag, text, yesTo } from '../frame/options.ts'
import { confirmed } from '../frame/prompt.ts'
import { relative } from '../frame/times.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

export const list = defineVerb({
  description: 'Lists the public keys that agents sign commits with.',
  options: {
    agent: FILTERS.agent,
    armor: flag('print the keys, for `gpg --import`'),
    ...LIST_OPTIONS,
  },
  examples: {
    'mayfly keys ls': 'all keys and their agents',
    'mayfly keys ls --armor | gpg --import': 'let git verify their commits',
  },
  json: arrayOf(async () => (await import('../../api/admin.ts')).AgentKey),
  ...ADMIN,
  run: async (context, { agent, armor, ...options }) => {
    const all = await collect((await openAdminClient(context)).admin.keys.list())
    const wanted = agent?.toLowerCase()
    const rows = all.filter(
      (row) => wanted === undefined || row.agent_id === agent || row.name.toLowerCase() === wanted,
    )
    if (wanted !== undefined && rows.length === 0)
      throw new CliError('agent_not_found', 'No such agent.', {
        hint: 'List them with `mayfly agent ls`.',
      })
    if (armor === true)
      return context.out.show(rows, () => rows.map((row) => row.public_key.trimEnd()).join('\n'))
    return showList(
      context,
      options,
      async function* () {
        yield* rows
      },
      {
        things: 'keys',
        none: 'No keys.',
        heading: ['KEY', 'AGENT', 'E-MAIL', 'CREATED'],
        cells: (row) => [row.key_id, row.name, row.email, relative(row.created_at, context.now())],
      },
    )
  },
})

export const rotate = defineVerb({
  description:
    'Creates a new key to sign access tokens with. Without --grace, all access tokens become invalid at once; agents then log in again on their own, and their commands warn that the keys of the server have changed. The keys of agents do not change.',
  options: {
    grace: text('<duration>', 'how long the old key stays valid'),
    ...yesTo('do not ask for confirmation'),
  },
  examples: {
    'mayfly keys rotate --grace 1h': 'without interruption',
    'mayfly keys rotate --yes': 'if the key may have leaked: end all tokens now',
  },
  json: '{"key_id", "previous_valid_until": time or null}',
  ...ADMIN,
  run: async (context, { grace, yes }) => {
    const question = 'Invalidate all access tokens now?'
    const otherwise = 'Use --grace DURATION, or --yes to invalidate them at once.'
    const isSure = yes === true || grace !== undefined
    await confirmed(context, isSure, question, { otherwise, no: 'Nothing was changed.' })
    const client = await openAdminClient(context)
    const made = await client.admin.keys.rotate({ grace })
    const before =
      made.previous_valid_until === null
        ? 'The old key is no longer valid.'
        : `The old key ends ${relative(made.previous_valid_until, context.now())}.`
    await context.out.show(made, () => `New key ${made.key_id}. ${before}`)
  },
})
