import { describeBackend, findKind } from '../admin/backend-rules.ts'
import { watchDeletion } from '../admin/watch-deletion.ts'
import { collect } from '../frame/collect.ts'
import { CliError } from '../frame/failure.ts'
import { listing, table } from '../frame/output.ts'
import { confirm } from '../frame/prompt.ts'
import { defineVerb } from '../frame/verb.ts'
import { fieldsOf } from '../kind-form/fields.ts'
import { flagsOf, shapeOf } from '../kind-form/flags.ts'
import { shownDefault } from '../kind-form/questions.ts'
import { openAdminClient } from '../session/admin.ts'

export const list = defineVerb({
  description: 'Lists the backends.',
  examples: [{ command: 'mayfly backend ls', about: 'list all backends' }],
  json: async () => {
    const [{ Type }, { Backend }] = await Promise.all([
      import('typebox'),
      import('../../api/admin-backends.ts'),
    ])
    return Type.Array(Backend)
  },
  exits: [3, 4, 5],
  admin: true,
  run: async (context) => {
    const rows = await collect((await openAdminClient(context)).admin.backends.list())
    await context.out.show(rows, () =>
      table(
        ['NAME', 'KIND', 'DEFAULT', 'MAX', 'SCOPES', 'DESCRIPTION'],
        rows.map((row) => [
          row.name,
          row.type,
          row.default_ttl,
          row.max_ttl,
          row.allowed_scopes?.join(' ') ?? 'any',
          row.broken === true ? 'broken: enter its configuration again' : (row.description ?? ''),
        ]),
      ),
    )
    if (rows.length === 0 && !context.out.isJson)
      context.out.note('There are no backends yet. Add one with `mayfly backend add TYPE`.')
  },
})

export const show = defineVerb<object, [name: string]>({
  description: 'Shows a backend with its configuration. Secrets read [redacted].',
  arguments: [{ name: '<name>', description: 'the backend' }],
  examples: [{ command: 'mayfly backend show orders', about: 'show its configuration' }],
  json: async () => (await import('../../api/admin-backends.ts')).Backend,
  exits: [3, 4, 5],
  admin: true,
  run: async (context, _options, name) => {
    const backend = await (await openAdminClient(context)).admin.backends.show(name)
    await context.out.show(backend, () => describeBackend(backend))
  },
})

export const remove = defineVerb<{ yes?: boolean; force?: boolean }, [name: string]>({
  description:
    'Deletes a backend. Refused while it has active credentials, unless --force revokes them first. Waits until all of them have ended, and shows how many remain if there are very many.',
  arguments: [{ name: '<name>', description: 'the backend' }],
  options: [
    { flags: '--force', description: 'revoke its active credentials first' },
    { flags: '-y, --yes', description: 'do not ask' },
  ],
  examples: [
    { command: 'mayfly backend rm orders', about: 'ask, then delete it' },
    {
      command: 'mayfly backend rm orders --force --yes',
      about: 'revoke its credentials and delete it without asking',
    },
  ],
  json: '{"deleted": "NAME"}',
  exits: [3, 4, 5],
  admin: true,
  run: async (context, options, name) => {
    const client = await openAdminClient(context)
    const { name: exact } = await client.admin.backends.show(name)
    const what = options.force === true ? `${exact} and revoke all its credentials` : exact
    const otherwise = 'Use --yes to delete without confirmation.'
    if (options.yes !== true && !(await confirm(context, `Delete the backend ${what}?`, { otherwise })))
      throw new CliError('not_confirmed', 'Nothing was deleted.')
    const deletion = await client.admin.backends
      .delete(exact, { force: options.force === true ? true : undefined })
      .catch((error: unknown) => {
        if ((error as { code?: unknown }).code !== 'conflict' || options.force === true) throw error
        throw new CliError('conflict', (error as Error).message, {
          hint: 'Wait until they end, or add --force.',
          cause: error,
        })
      })
    if (deletion !== undefined) await watchDeletion(context, client, deletion)
    await context.out.show({ deleted: exact }, () => `Deleted ${exact}.`)
  },
})

export const kinds = defineVerb<object, [type?: string]>({
  description: 'Lists the kinds of backend or, with a type, its flags for `backend add`.',
  arguments: [{ name: '[type]', description: 'show this kind and its flags' }],
  examples: [
    { command: 'mayfly backend kinds', about: 'list the kinds' },
    { command: 'mayfly backend kinds postgres', about: 'show the flags of `mayfly backend add postgres`' },
  ],
  json: async () => {
    const [{ Type }, { Kind }] = await Promise.all([import('typebox'), import('../../api/admin-backends.ts')])
    return Type.Array(Kind, { description: 'one object when a type is named' })
  },
  exits: [3, 4, 5],
  admin: true,
  run: async (context, _options, type) => {
    const client = await openAdminClient(context)
    if (type !== undefined) {
      const kind = await findKind(client, type)
      return context.out.show(kind, () => describeKind(kind))
    }
    const rows = await collect(client.admin.kinds())
    await context.out.show(rows, () =>
      table(
        ['KIND', 'TITLE', 'REVOCATION'],
        rows.map((row) => [row.type, row.title, row.revocation === 'exact' ? 'immediate' : 'by expiry']),
      ),
    )
  },
})

type Kind = Awaited<ReturnType<typeof findKind>>

function describeKind(kind: Kind): string {
  const flags = flagsOf(kind.type, fieldsOf(kind.config))
  const rows = flags.map((flag) => {
    const { field } = flag
    const preset = field.default === undefined ? '' : ` [default: ${shownDefault(field)}]`
    return [
      shapeOf(flag),
      field.needed ? 'required' : '',
      `${field.description}${flag.file ? ' Path of a file, or - for standard input.' : preset}`,
    ]
  })
  const facts = listing({
    kind: kind.type,
    title: kind.title,
    revocation: kind.revocation === 'exact' ? 'immediate' : 'by expiry',
    scopes: kind.scopes.help,
    examples: kind.scopes.examples.join(', '),
  })
  return `${facts}\n\n${table(['FLAG', '', 'MEANING'], rows)}`
}
