import { findKind } from '../admin/backend-rules.ts'
import { ADMIN, arrayOf } from '../admin/verbs.ts'
import { collect, showRows } from '../frame/list.ts'
import { listing, table } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { fieldsOf } from '../kind-form/fields.ts'
import { flagsOf, shapeOf } from '../kind-form/flags.ts'
import { shownDefault } from '../kind-form/questions.ts'
import { openAdminClient } from '../session/admin.ts'

const kindSchema = async () => (await import('../../api/admin-backends.ts')).Kind

export const list = defineVerb({
  description: 'Lists the kinds of backend.',
  examples: { 'mayfly kind ls': 'what you can add as a backend' },
  json: arrayOf(kindSchema),
  ...ADMIN,
  run: async (context) => {
    const rows = await collect((await openAdminClient(context)).admin.kinds())
    await showRows(context, rows, {
      things: 'kinds',
      none: 'No kinds.',
      heading: ['KIND', 'TITLE', 'REVOCATION'],
      cells: (row) => [row.type, row.title, revocation(row)],
    })
  },
})

export const show = defineVerb({
  description:
    'Shows a kind of backend: its scopes, the variables that `mayfly run --backend` sets, and its flags for `backend add` and `backend update`.',
  arguments: [{ name: '<kind>', description: 'the kind', values: 'kinds' }],
  examples: { 'mayfly kind show postgres': 'the flags of `mayfly backend add postgres`' },
  json: kindSchema,
  ...ADMIN,
  run: async (context, _options, name) => {
    const kind = await findKind(await openAdminClient(context), name)
    await context.out.show(kind, () => describeKind(kind))
  },
})

type Kind = Awaited<ReturnType<typeof findKind>>

const revocation = ({ revocation: how }: Kind) => (how === 'exact' ? 'at once' : 'by expiry')

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
