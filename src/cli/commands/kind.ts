import { findKind } from '../admin/backend-rules.ts'
import { ADMIN, arrayOf } from '../admin/verbs.ts'
import { collect } from '../frame/collect.ts'
import { CliError } from '../frame/failure.ts'
import { showRows } from '../frame/list.ts'
import { listing, table } from '../frame/output.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { fieldsOf } from '../kind-form/fields.ts'
import { flagsOf, shapeOf } from '../kind-form/flags.ts'
import { shownDefault } from '../kind-form/questions.ts'
import { openAdminClient } from '../session/admin.ts'

const kindSchema = async () => (await import('../../api/admin-backends.ts')).Kind

export const list = defineVerb({
  description: 'Lists the kinds of backend.',
  examples: [{ command: 'mayfly kind ls', about: 'what you can add as a backend' }],
  json: arrayOf(kindSchema),
  ...ADMIN,
  run: (context) => listKinds(context),
})

export const show = defineVerb({
  description:
    'Shows a kind of backend: its scopes, the variables that `mayfly run --backend` sets, and its flags for `backend add` and `backend update`.',
  arguments: [{ name: '<kind>', description: 'the kind', values: 'kinds' }],
  examples: [{ command: 'mayfly kind show postgres', about: 'the flags of `mayfly backend add postgres`' }],
  json: kindSchema,
  ...ADMIN,
  run: (context, _options, name) => showKind(context, name),
})

/** The old name of `list` and `show`. */
export const kinds = defineVerb({
  description: 'The old name of `mayfly kind ls` and, with a kind, of `mayfly kind show`.',
  arguments: [{ name: '[kind]', description: 'show this kind and its flags', values: 'kinds' }],
  examples: [
    { command: 'mayfly backend kinds postgres', about: 'the flags of `mayfly backend add postgres`' },
  ],
  json: async () => {
    const [{ Type }, { Kind }] = await Promise.all([import('typebox'), import('../../api/admin-backends.ts')])
    return Type.Array(Kind, { description: 'one object when a kind is named' })
  },
  ...ADMIN,
  run: (context, _options, name) => (name === undefined ? listKinds(context) : showKind(context, name)),
})

type Kind = Awaited<ReturnType<typeof findKind>>

async function listKinds(context: Context): Promise<void> {
  const rows = await collect((await openAdminClient(context)).admin.kinds())
  await showRows<Kind>(context, rows, {
    things: 'kinds',
    none: 'No kinds.',
    heading: ['KIND', 'TITLE', 'REVOCATION'],
    cells: (row) => [row.type, row.title, revocation(row)],
  })
}

const revocation = ({ revocation: how }: Kind) => (how === 'exact' ? 'at once' : 'by expiry')

async function showKind(context: Context, name: string): Promise<void> {
  const kind = await findKind(await openAdminClient(context), name)
  await context.out.show(kind, () => describeKind(kind))
}

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
    revocation: revocation(kind),
    recovery: kind.recovery === 'none' ? 'what an interrupted issue leaves cannot be found' : undefined,
    scopes: kind.scopes.help,
  })
  const tables = [
    facts,
    tableOf(
      ['SCOPE', 'A CREDENTIAL MAY'],
      kind.scopes.forms.map(({ form, gives }) => [form, gives]),
    ),
    tableOf(['VARIABLE', 'VALUE'], Object.entries(kind.environment ?? {}).map(variableRow)),
    tableOf(['FLAG', '', 'MEANING'], rows),
  ]
  return tables.filter((part) => part !== '').join('\n\n')
}

const tableOf = (heading: readonly string[], rows: readonly string[][]) =>
  rows.length === 0 ? '' : table(heading, rows)

/** What `mayfly run --backend` sets. */
function variableRow([name, value]: [string, string | { readonly file: string }]): string[] {
  return [name, typeof value === 'string' ? value : `path of a file with ${value.file}`]
}

const ARGUMENT = { name: '[kind]', description: 'one kind', values: 'kinds' } as const

export const reload = defineVerb({
  description: 'Reopens the backends of one kind, or of all. Active credentials remain valid.',
  arguments: [ARGUMENT],
  examples: [
    { command: 'mayfly kind reload', about: 'the backends of all kinds' },
    { command: 'mayfly kind reload postgres', about: 'the backends of one kind' },
  ],
  json: '{"reloaded": ["NAME", …]}',
  ...ADMIN,
  run: async (context, _options, name) => {
    const { plugins } = (await openAdminClient(context)).admin
    const reloaded =
      name === undefined
        ? (await plugins.reloadAll()).plugins.map((one) => one.name)
        : [(await plugins.reload(name).catch(unknownKind)).reloaded]
    await context.out.show({ reloaded }, () => `Reloaded: ${reloaded.join(', ')}.`)
  },
})

function unknownKind(error: unknown): never {
  if ((error as { code?: unknown }).code !== 'not_found') throw error
  throw new CliError('not_found', 'No kind with this name is loaded.', {
    hint: 'List them with `mayfly kind ls`.',
    cause: error,
  })
}
