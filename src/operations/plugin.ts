import { ADMIN, arrayOf } from '../cli/admin/verbs.ts'
import { CliError } from '../cli/frame/failure.ts'
import { collect, showRows } from '../cli/frame/list.ts'
import { yesTo } from '../cli/frame/options.ts'
import { listing } from '../cli/frame/output.ts'
import { confirmed } from '../cli/frame/prompt.ts'
import { relative } from '../cli/frame/times.ts'
import { defineVerb } from '../cli/frame/verb.ts'
import { openAdminClient, openSocketClient } from '../cli/session/admin.ts'
import type { Plugin } from '../client/wire.ts'
import { INSTALLATION, readInstallation } from './init/installation.ts'

const PLUGIN = { name: '<name>', description: 'the plugin', values: 'plugins' } as const
const pluginSchema = async () => (await import('../api/admin.ts')).Plugin

export const list = defineVerb({
  description:
    'Lists the kinds with their versions and origins, those that were added first. `mayfly kind ls` lists them with their titles.',
  examples: { 'mayfly plugin ls': 'what was added, and what is built in' },
  json: arrayOf(pluginSchema),
  ...ADMIN,
  run: async (context) => {
    const all = await collect((await openAdminClient(context)).admin.plugins.list())
    const rows = [...all.filter(({ builtin }) => !builtin), ...all.filter(({ builtin }) => builtin)]
    await showRows(context, rows, {
      things: 'kinds',
      none: 'No kinds.',
      heading: ['KIND', 'VERSION', 'FROM'],
      cells: (row) => [row.name, row.version, row.origin ?? 'built in'],
    })
  },
})

export const show = defineVerb({
  description: 'Shows a plugin: which bytes the server starts, and where they came from.',
  arguments: [PLUGIN],
  examples: { 'mayfly plugin show acme': 'its version and its SHA-256' },
  json: pluginSchema,
  ...ADMIN,
  run: async (context, _options, name) => {
    const found = await collect((await openAdminClient(context)).admin.plugins.list())
    const plugin = found.find((one) => one.name === name) ?? noSuchPlugin()
    await context.out.show(plugin, () => describe(plugin, context.now()))
  },
})

function describe(
  { name, own_name, version, builtin, origin, sha256, protocol, runtime, added_at }: Plugin,
  now: number,
) {
  return listing({
    kind: name,
    'its own name': own_name,
    version,
    from: builtin ? 'built in' : origin,
    sha256,
    protocol,
    runs: runtime === 'node' ? "under Node's permission model" : runtime && 'as a program of its own',
    added: added_at === undefined ? undefined : relative(added_at, now),
  })
}

export const reload = defineVerb({
  description:
    'Starts the processes of a plugin, or of all, again, and reopens their backends; also those of a kind that is built in. Requests under way finish on the old process. New bytes take effect only with `mayfly plugin add`.',
  arguments: [{ name: '[kind]', description: 'one kind', values: 'kinds' }],
  examples: {
    'mayfly plugin reload acme': 'new processes for one plugin',
    'mayfly plugin reload': 'the backends of all kinds',
  },
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

export const remove = defineVerb({
  description:
    "Removes a plugin, on the server's machine. Refused while it has backends: their credentials could not be revoked any more.",
  arguments: [PLUGIN],
  options: { ...INSTALLATION, ...yesTo('do not ask') },
  examples: { 'mayfly plugin rm acme': 'ask, then remove it' },
  json: '{"removed": "NAME"}',
  ...ADMIN,
  run: async (context, options, name) => {
    const { dataDir } = await readInstallation(context, options)
    const { admin } = await openSocketClient(context, dataDir)
    const otherwise = 'Use --yes to remove it without confirmation.'
    const question = `Remove the plugin ${name}?`
    await confirmed(context, options.yes, question, { otherwise, no: 'Nothing was removed.' })
    await admin.plugins.remove(name).catch((error: { code?: unknown }) => {
      if (error.code === 'not_found') noSuchPlugin(error)
      throw error
    })
    await context.out.show({ removed: name }, () => `Removed ${name}.`)
  },
})

function noSuchPlugin(cause?: unknown): never {
  throw new CliError('not_found', 'There is no plugin of this name.', {
    hint: 'List them with `mayfly plugin ls`.',
    cause,
  })
}

function unknownKind(error: unknown): never {
  if ((error as { code?: unknown }).code !== 'not_found') throw error
  throw new CliError('not_found', 'No kind with this name is loaded.', {
    hint: 'List them with `mayfly kind ls`.',
    cause: error,
  })
}
