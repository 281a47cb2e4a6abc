import { describeBackend } from '../admin/backend-rules.ts'
import { exactName } from '../admin/exact-name.ts'
import { ADMIN, arrayOf } from '../admin/verbs.ts'
import { watchDeletion } from '../admin/watch-deletion.ts'
import { globalFlags } from '../frame/global-flags.ts'
import { LIST_OPTIONS, showList } from '../frame/list.ts'
import { flag, yesTo } from '../frame/options.ts'
import { confirmed } from '../frame/prompt.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

const backendSchema = async () => (await import('../../api/admin-backends.ts')).Backend
const BACKEND = { name: '<name>', description: 'the backend', values: 'backends' } as const

export const list = defineVerb({
  description: 'Lists the backends.',
  options: LIST_OPTIONS,
  examples: {
    'mayfly backend ls': 'list all backends',
  },
  json: arrayOf(backendSchema),
  ...ADMIN,
  run: async (context, options) => {
    const { admin } = await openAdminClient(context)
    await showList(context, options, admin.backends.list, {
      things: 'backends',
      none: `No backends yet. Add one with \`mayfly backend add KIND${globalFlags(context.globals)}\`.`,
      heading: ['NAME', 'KIND', 'DEFAULT TTL', 'MAX TTL', 'SCOPES', 'DESCRIPTION'],
      cells: (row) => [
        row.name,
        row.type,
        row.default_ttl,
        row.max_ttl,
        row.allowed_scopes?.join(' ') ?? 'any',
        row.broken === true ? 'broken: see `backend show`' : (row.description ?? ''),
      ],
    })
  },
})

export const show = defineVerb({
  description: 'Shows a backend with its configuration. Secrets read [redacted].',
  arguments: [BACKEND],
  examples: {
    'mayfly backend show orders': 'show its configuration',
  },
  json: backendSchema,
  ...ADMIN,
  run: async (context, _options, name) => {
    const backend = await (await openAdminClient(context)).admin.backends.show(name)
    await context.out.show(backend, () => describeBackend(backend, context.now()))
  },
})

export const remove = defineVerb({
  description:
    'Deletes a backend. Refused while it has active credentials, unless --force revokes them first. Waits until all of them have ended, and shows how many remain if there are very many.',
  arguments: [BACKEND],
  options: { force: flag('revoke its active credentials first'), ...yesTo('do not ask') },
  examples: {
    'mayfly backend rm orders': 'ask, then delete it',
    'mayfly backend rm orders --force --yes': 'revoke its credentials and delete it without asking',
  },
  json: '{"deleted": "NAME"}',
  ...ADMIN,
  run: async (context, options, name) => {
    const client = await openAdminClient(context)
    const exact = await exactName(name, client.admin.backends.show(name))
    const what = options.force === true ? `${exact} and revoke all its credentials` : exact
    const otherwise = 'Use --yes to delete without confirmation.'
    const question = `Delete the backend ${what}?`
    await confirmed(context, options.yes, question, { otherwise, no: 'Nothing was deleted.' })
    const force = options.force === true ? true : undefined
    const deletion = await client.admin.backends.delete(exact, { force })
    if (deletion !== undefined) await watchDeletion(context, client, deletion)
    await context.out.show({ deleted: exact }, () => `Deleted ${exact}.`)
  },
})
