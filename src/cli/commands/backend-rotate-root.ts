import { ADMIN } from '../admin/verbs.ts'
import { yesTo } from '../frame/options.ts'
import { confirmed } from '../frame/prompt.ts'
import { defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { openAdminClient } from '../session/admin.ts'

export const verb = defineVerb({
  description:
    'Replaces the secret that Mayfly itself logs in to an upstream with by a new one that nobody knows. Credentials stay valid, and issuing goes on. If the server stops in the middle, it completes the rotation by itself, or this command does. Anything else that logs in with the old secret stops working, and backups of the store from before hold the old one.',
  arguments: [{ name: '<name>', description: 'the backend', values: 'backends' }],
  options: { ...yesTo('do not ask') },
  examples: {
    'mayfly backend rotate-root orders': 'ask, then replace the password',
    'mayfly backend rotate-root orders --yes --json': 'regularly, from cron',
  },
  json: async () => (await import('../../api/admin-backends.ts')).RootRotation,
  ...ADMIN,
  run: async (context, { yes }, name) => {
    const client = await openAdminClient(context)
    const { name: exact } = await client.admin.backends.show(name)
    const question = `Replace the secret that Mayfly logs in with at ${exact}? The old one ends.`
    const otherwise = 'Use --yes to replace it without confirmation.'
    await confirmed(context, yes, question, { otherwise, no: 'Nothing was changed.' })
    const rotation = client.admin.backends.rotateRoot(exact)
    const made = await whileWaiting(context, `Replacing the secret of ${exact}`, rotation)
    const what = `${made.fields.join(' and ')} of ${made.name}`
    const how = made.resumed ? `Completed an interrupted rotation: replaced ${what}.` : `Replaced ${what}.`
    const left = made.old_ended ? '' : ' The old one could not be ended yet; the server goes on trying.'
    await context.out.show(made, () => how + left)
  },
})
