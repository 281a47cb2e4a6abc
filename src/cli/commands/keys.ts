import { collect } from '../frame/collect.ts'
import { CliError } from '../frame/failure.ts'
import { table } from '../frame/output.ts'
import { confirm } from '../frame/prompt.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

export const list = defineVerb<{ agent?: string; armor?: boolean }>({
  description: 'Lists the public keys with which the agents sign their commits.',
  options: [
    { flags: '--agent <name>', description: 'of this agent, by its name or id' },
    { flags: '--armor', description: 'print the keys themselves, for `gpg --import`' },
  ],
  examples: [
    { command: 'mayfly keys ls', about: 'whose key is which' },
    { command: 'mayfly keys ls --armor | gpg --import', about: 'so that git can verify their commits' },
  ],
  json: async () => {
    const [{ Type }, { AgentKey }] = await Promise.all([import('typebox'), import('../../api/admin.ts')])
    return Type.Array(AgentKey)
  },
  exits: [3, 4, 5],
  admin: true,
  run: async (context, { agent, armor }) => {
    const all = await collect((await openAdminClient(context)).admin.keys.list())
    const wanted = agent?.toLowerCase()
    const rows = all.filter(
      (row) => wanted === undefined || row.agent_id === agent || row.name.toLowerCase() === wanted,
    )
    if (wanted !== undefined && rows.length === 0)
      throw new CliError('agent_not_found', 'There is no such agent.', {
        hint: 'See them with `mayfly agent ls`.',
      })
    await context.out.show(rows, () =>
      armor === true
        ? rows.map((row) => row.public_key.trimEnd()).join('\n')
        : table(
            ['KEY', 'AGENT', 'E-MAIL', 'CREATED'],
            rows.map((row) => [row.key_id, row.name, row.email, row.created_at]),
          ),
    )
  },
})

export const rotate = defineVerb<{ grace?: string; yes?: boolean }>({
  description:
    'Makes a new key that signs the access tokens of the server. Without --grace all that were issued end at once; agents log in again by themselves. The keys of agents are not touched.',
  options: [
    { flags: '--grace <duration>', description: 'the old key verifies that long' },
    { flags: '-y, --yes', description: 'do not ask' },
  ],
  examples: [
    { command: 'mayfly keys rotate --grace 1h', about: 'nobody notices' },
    { command: 'mayfly keys rotate --yes', about: 'a key may be known to others: end all tokens now' },
  ],
  json: '{"key_id", "previous_valid_until": time or null}',
  exits: [3, 4, 5],
  admin: true,
  run: async (context, { grace, yes }) => {
    const question = 'End all access tokens now?'
    const otherwise = 'Give --grace DURATION, or --yes to end them at once.'
    if (grace === undefined && yes !== true && !(await confirm(context, question, { otherwise })))
      throw new CliError('not_confirmed', 'Nothing was changed.')
    const client = await openAdminClient(context)
    const made = await client.admin.keys.rotate(grace === undefined ? {} : { grace })
    const before =
      made.previous_valid_until === null
        ? 'The old one is not valid any more.'
        : `The old one is valid until ${made.previous_valid_until}.`
    await context.out.show(made, () => `New key ${made.key_id}. ${before}`)
  },
})
