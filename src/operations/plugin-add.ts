import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { ADMIN } from '../cli/admin/verbs.ts'
import { CliError, EXIT, usage } from '../cli/frame/failure.ts'
import { choice, text, type ValuesOf } from '../cli/frame/options.ts'
import { confirm } from '../cli/frame/prompt.ts'
import { type Context, defineVerb } from '../cli/frame/verb.ts'
import { openSocketClient } from '../cli/session/admin.ts'
import type { Config } from '../config/config.ts'
import { PLUGIN_NAME_PATTERN } from '../domain/plugin.ts'
import { INSTALLATION, readInstallation, reportFaults } from './init/installation.ts'
import type { Artefact } from './plugin/artefact.ts'

const OPTIONS = {
  sha256: text('<hex>', 'refuse the plugin if it has another SHA-256'),
  name: text('<name>', 'refuse the plugin if it calls itself otherwise'),
  as: text('<name>', 'the name of its kind here; by default what it calls itself'),
  protocol: choice(
    '<protocol>',
    'the protocol that it speaks; creddy by default for a file called creddy-NAME',
    ['mayfly', 'creddy'],
  ),
  ...INSTALLATION,
}

type Options = ValuesOf<typeof OPTIONS>

export const verb = defineVerb({
  description:
    "Adds a kind from outside, on the server's machine, as root or the user of the server. Copies the plugin into plugin_dir, pins its SHA-256, and starts it once so that it describes itself. A plugin of the same kind is replaced, and its backends continue with the new one.",
  arguments: [{ name: '<source>', description: './file, npm:NAME@VERSION, or https://…' }],
  options: OPTIONS,
  examples: {
    'mayfly plugin add npm:mayfly-plugin-acme@1.2.3': 'a package of npm, without its scripts',
    'mayfly plugin add ./acme-1.2.3.tgz': 'what `npm pack` made',
    [`mayfly plugin add https://dl.example.com/acme --sha256 ${'c0ffee'.padEnd(64, '0')}`]:
      'a program whose hash its author states',
    'mayfly plugin add ./creddy-github --as github-plugin': 'beside the kind github',
  },
  json: async () => (await import('../api/admin.ts')).Plugin,
  ...ADMIN,
  run: (context, options, source) => reportFaults(context, () => add(context, options, source)),
})

async function add(context: Context, options: Options, source: string): Promise<void> {
  const { out } = context
  const wanted = options.sha256?.toLowerCase()
  if (wanted !== undefined && !/^[0-9a-f]{64}$/.test(wanted))
    throw usage('--sha256 must have 64 hexadecimal digits.', 'sha256sum FILE prints them.')
  if (options.as !== undefined && !new RegExp(PLUGIN_NAME_PATTERN).test(options.as))
    throw usage('--as must be a name of small letters, digits and hyphens.', 'Such as --as acme-eu.')
  const config = await readInstallation(context, options)
  const { admin } = await openSocketClient(context, config.dataDir)
  const [{ readSource }, { runtimeOf }, { sha256Of }] = await Promise.all([
    import('./plugin/source.ts'),
    import('./plugin/artefact.ts'),
    import('../app/plugins/artefacts.ts'),
  ])
  const artefact = await readSource(context, source)
  const sha256 = sha256Of(artefact.bytes)
  requireHash(wanted, sha256, source)
  if (wanted === undefined && artefact.origin.startsWith('https:'))
    await confirmHash(context, artefact, sha256)
  const { protocol = artefact.file.startsWith('creddy-') ? 'creddy' : 'mayfly' } = options
  const runtime = runtimeOf(artefact)
  const release = await place(context, config, artefact)
  out.progress('Starting it, so that it describes itself')
  const asked = { sha256, runtime, origin: artefact.origin, name: options.name, as: options.as }
  const plugin = await admin.plugins
    .add({ ...asked, protocol: `${protocol}.plugin.v1` as const })
    .finally(release)
  await out.report(plugin, `Added ${plugin.name} ${plugin.version}, with the SHA-256 ${sha256}.`)
  if (!out.isJson)
    out.note(`Its flags: \`mayfly kind show ${plugin.name}\`. Use it: \`mayfly backend add ${plugin.name}\`.`)
}

function requireHash(wanted: string | undefined, sha256: string, source: string): void {
  if (wanted === undefined || wanted === sha256) return
  throw new CliError('other_hash', `${source} has the SHA-256 ${sha256}, and not the one that was given.`, {
    hint: 'Nothing was added. Do not use these bytes before their author has stated that hash.',
  })
}

/** The server of the file could send any program, so a person compares its hash with the one that the author states. */
async function confirmHash(context: Context, { origin }: Artefact, sha256: string): Promise<void> {
  context.out.note(`${origin}\nSHA-256: ${sha256}`)
  const otherwise = `If its author states this hash, repeat the command with --sha256 ${sha256}.`
  if (await confirm(context, 'Is this the hash that its author states?', { otherwise })) return
  throw new CliError('not_confirmed', 'Nothing was added.', { exit: EXIT.failed, hint: otherwise })
}

/** Root works with the rights of the owner of the directory. Returns what to call once the server has answered. */
async function place(context: Context, config: Config, { bytes }: Artefact): Promise<() => Promise<void>> {
  const [{ stageArtefact }, { withRightsOf }] = await Promise.all([
    import('../app/plugins/artefacts.ts'),
    import('../app/rights.ts'),
  ])
  const directory = resolve(context.cwd, config.pluginDir)
  const dataDir = resolve(context.cwd, config.dataDir)
  const isThere = await stat(directory).then(
    () => true,
    () => false,
  )
  if (!isThere && !directory.startsWith(`${dataDir}/`))
    throw new CliError('no_directory', `The plugin_dir of the server, ${directory}, does not exist.`, {
      hint: `Make it: sudo install -d -m 700 -o USER ${directory}, with the user of the server.`,
    })
  try {
    const { release } = await withRightsOf(isThere ? directory : dataDir, () =>
      stageArtefact(directory, bytes),
    )
    return () => withRightsOf(directory, release)
  } catch (error) {
    if ((error as { code?: unknown }).code !== undefined || !(error instanceof Error)) throw error
    throw new CliError('not_private', error.message, { cause: error })
  }
}
