import { collect } from '../frame/collect.ts'
import { CliError } from '../frame/failure.ts'
import { table } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'

export const list = defineVerb({
  description: 'Lists the kinds of backends that the server has loaded.',
  examples: [{ command: 'mayfly plugin ls', about: 'with their versions' }],
  json: async () => {
    const [{ Type }, { Plugin }] = await Promise.all([import('typebox'), import('../../api/admin.ts')])
    return Type.Array(Plugin)
  },
  exits: [3, 4, 5],
  admin: true,
  run: async (context) => {
    const rows = await collect((await openAdminClient(context)).admin.plugins.list())
    await context.out.show(rows, () =>
      table(
        ['NAME', 'VERSION', 'FROM'],
        rows.map((row) => [row.name, row.version, row.builtin ? 'built in' : 'plugin']),
      ),
    )
  },
})

export const reload = defineVerb<object, [name?: string]>({
  description: 'Reopens the backends of one kind, or of all. Active credentials remain valid.',
  arguments: [{ name: '[name]', description: 'one kind' }],
  examples: [
    { command: 'mayfly plugin reload', about: 'all of them' },
    { command: 'mayfly plugin reload postgres', about: 'the backends of one kind' },
  ],
  json: '{"reloaded": ["NAME", …]}',
  exits: [3, 4, 5],
  admin: true,
  run: async (context, _options, name) => {
    const { plugins } = (await openAdminClient(context)).admin
    const reloaded =
      name === undefined
        ? (await plugins.reloadAll()).plugins.map((one) => one.name)
        : [(await plugins.reload(name).catch(unknownPlugin)).reloaded]
    await context.out.show({ reloaded }, () => `Reloaded: ${reloaded.join(', ')}.`)
  },
})

function unknownPlugin(error: unknown): never {
  if ((error as { code?: unknown }).code !== 'not_found') throw error
  throw new CliError('not_found', 'No kind with this name is loaded.', {
    hint: 'List them with `mayfly plugin ls`.',
    cause: error,
  })
}
