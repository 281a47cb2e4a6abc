import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { clientSettings, type Setting } from '../cli/admin/client-settings.ts'
import { EXIT } from '../cli/frame/failure.ts'
import { flag, text } from '../cli/frame/options.ts'
import { table } from '../cli/frame/output.ts'
import { type Context, defineVerb } from '../cli/frame/verb.ts'

export const show = defineVerb({
  description:
    'Shows the effective settings of this command, and with --origin the source of each. With --server-config it shows the settings of a server with this file, these variables and these flags. Secrets appear as [redacted].',
  arguments: [
    { name: '[flags...]', description: 'with --server-config: flags of `mayfly server`, after --' },
  ],
  options: {
    origin: flag('show the source of each setting: flag, environment, file or default'),
    serverConfig: text('[file]', 'show server settings, with this configuration file [env: MAYFLY_CONFIG]'),
  },
  examples: {
    'mayfly config show --origin': 'which server, which login, and why',
    'mayfly config show --origin --server-config /etc/mayfly.yaml':
      'the settings of a server, before you start it',
    'mayfly config show --server-config -- --listen 0.0.0.0:8620': 'with a flag of `mayfly server`',
  },
  json: '[{"name", "value": text or null, "origin"}]',
  admin: true,
  run: async (context, { origin, serverConfig }, flags) => {
    const settings =
      serverConfig === undefined && flags.length === 0
        ? await clientSettings(context)
        : await serverSettings(context, serverConfig, flags)
    if (settings === undefined) return EXIT.usage
    await context.out.show(settings, () =>
      table(
        origin === true ? ['SETTING', 'VALUE', 'FROM'] : ['SETTING', 'VALUE'],
        settings.map((one) => [one.name, one.value ?? '(none)', ...(origin === true ? [one.origin] : [])]),
      ),
    )
    return EXIT.done
  },
})

/** Reports every fault; undefined if there are any. */
async function serverSettings(
  context: Context,
  file: string | true | undefined,
  argv: readonly string[],
): Promise<readonly Setting[] | undefined> {
  const [{ showSettings }, flags] = await Promise.all([import('../config/show-settings.ts'), readFlags(argv)])
  try {
    return await showSettings({
      argv: { ...flags, ...(typeof file === 'string' ? { config: file } : {}) },
      env: context.env,
      readFile: (path) => readFile(resolve(context.cwd, path)),
    })
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'ConfigError') throw error
    const { faults } = error as Error & { faults: readonly { source: string; message: string }[] }
    for (const { source, message } of faults) context.out.note(`mayfly: ${source}: ${message}`)
    return undefined
  }
}

async function readFlags(argv: readonly string[]): Promise<Record<string, unknown>> {
  const [{ parseVerb }, { verb }] = await Promise.all([
    import('../cli/frame/parse.ts'),
    import('./server.ts'),
  ])
  const parsed = await parseVerb(['server'], verb, argv)
  return parsed === 'help' ? {} : parsed.options
}
