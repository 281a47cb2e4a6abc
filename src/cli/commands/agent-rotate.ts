import { resolve } from 'node:path'
import { shellWord } from '../../domain/shell-word.ts'
import { createdForm, deliverSecrets, FORM_OPTIONS } from '../admin/created-agent.ts'
import { unknownAgent } from '../admin/describe-agent.ts'
import { ADMIN } from '../admin/verbs.ts'
import { usage } from '../frame/failure.ts'
import { text, yesTo } from '../frame/options.ts'
import { present } from '../frame/present.ts'
import { confirmed } from '../frame/prompt.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'
import { isPresent } from '../session/private-file.ts'

export const verb = defineVerb({
  description:
    'Replaces the token and the client secret of an agent and prints the new ones, which cannot be shown again. The old ones, and the access tokens that came from them, stop working at once, or after --grace. The agent keeps its id, scopes, credentials and keys.',
  arguments: [{ name: '<name>', description: 'the agent', values: 'agents' }],
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
  run: async (context, { grace, output, write, yes }, name) => {
    const form = createdForm(context.out.isJson ? 'json' : (output ?? 'text'))
    const file = write === undefined ? undefined : resolve(context.cwd, write)
    // Before the old secrets end.
    if (file !== undefined && (await isPresent(file)))
      throw usage(`${write} already exists.`, 'Choose a new file, or move the old one away.')
    const client = await openAdminClient(context)
    const agent = await client.admin.agents.show(name).catch(unknownAgent)
    const when = grace === undefined ? 'now' : `in ${grace}`
    const question = `Replace the token and client secret of ${agent.name}? The old ones end ${when}.`
    const otherwise = 'Use --yes to replace them without a question.'
    await confirmed(context, yes, question, { otherwise, no: 'Nothing was changed.' })
    const again = `If nobody has the new secrets, run \`mayfly agent rotate ${shellWord(agent.name)}\` again.`
    const rotated = await client.admin.agents
      .rotate(agent.name, present<{ grace?: string }>({ grace }))
      .catch((error: unknown) => {
        const isUnsure = context.signal.aborted || (error as { mayHaveArrived?: unknown }).mayHaveArrived
        if (isUnsure === true) context.out.note(`The secrets may have been replaced. ${again}`)
        throw error
      })
    try {
      context.signal.throwIfAborted()
      await deliverSecrets(context, rotated, form, file)
    } catch (error) {
      context.out.note(`The secrets were replaced. ${again}`)
      throw error
    }
    const until = rotated.previous_valid_until
    if (until !== null && !context.out.isJson) context.out.note(`The old ones are valid until ${until}.`)
  },
})
