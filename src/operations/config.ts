import { EXIT } from '../cli/frame/failure.ts'
import { flag, text } from '../cli/frame/options.ts'
import { table } from '../cli/frame/output.ts'
import { type Context, defineVerb } from '../cli/frame/verb.ts'
import { findAnyLogin } from '../cli/session/find-login.ts'
import { findKeychain } from '../cli/session/keychain.ts'
import { configPath } from '../cli/session/paths.ts'
import { givenOf, LOGIN_WORDS, type Origin, readTarget, type Target } from '../cli/session/session.ts'
import { faultsOf, noteFaults } from './config-file.ts'
import { filesFrom } from './init/installation.ts'

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
    const settings = await showSettings({
      argv: { ...flags, ...(typeof file === 'string' ? { config: file } : {}) },
      env: context.env,
      ...filesFrom(context),
    })
    return settings.map(({ name, value, origin }) => ({ name, value, origin }))
  } catch (error) {
    noteFaults(context, faultsOf(error))
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

interface Setting {
  readonly name: string
  readonly value: string | null
  readonly origin: string
}

const VARIABLES = {
  server: 'MAYFLY_SERVER',
  profile: 'MAYFLY_PROFILE',
  ca: 'MAYFLY_CA_FILE',
  dataDir: 'MAYFLY_DATA_DIR',
} as const

/** The settings in effect, without secrets. */
async function clientSettings(context: Context): Promise<Setting[]> {
  const { globals, env } = context
  const target = await readTarget(context)
  const caFrom = globals.ca !== undefined ? 'flag' : givenOf(env[VARIABLES.ca]) ? 'environment' : 'profile'
  const dataDir = globals.dataDir ?? givenOf(env[VARIABLES.dataDir])
  return [
    { name: 'server', value: target.server.text, origin: said(target.serverFrom, 'server', target) },
    { name: 'profile', value: target.profileName, origin: said(target.profileFrom, 'profile', target) },
    {
      name: 'ca',
      value: target.caFile ?? null,
      origin: target.caFile === undefined ? 'default' : said(caFrom, 'ca', target),
    },
    await loginSetting(context, target),
    keychainSetting(context),
    {
      name: 'data-dir',
      value: dataDir ?? './mayfly-data',
      origin: globals.dataDir !== undefined ? 'flag --data-dir' : dataDir ? envOf('dataDir') : 'default',
    },
    {
      name: 'config-dir',
      value: configPath(context),
      origin: (env['XDG_CONFIG_HOME'] ?? '').startsWith('/') ? 'environment XDG_CONFIG_HOME' : 'default',
    },
  ]
}

const envOf = (name: keyof typeof VARIABLES) => `environment ${VARIABLES[name]}`

function said(from: Origin, name: 'server' | 'profile' | 'ca', { profileName }: Target): string {
  switch (from) {
    case 'flag':
      return `flag --${name}`
    case 'environment':
      return envOf(name)
    case 'profile':
      return `profile ${profileName}`
    case 'default':
      return 'default'
  }
}

async function loginSetting(context: Context, target: Target): Promise<Setting> {
  const login = await findAnyLogin(context, target)
  if (login === undefined) return { name: 'login', value: null, origin: 'default' }
  const kind = LOGIN_WORDS[login.auth.kind]
  if (login.auth.kind === 'identity') return { name: 'login', value: kind, origin: login.auth.title }
  if (login.from !== 'environment')
    return { name: 'login', value: kind, origin: `${login.from}, profile ${target.profileName}` }
  const names =
    login.auth.kind === 'bearer'
      ? ['MAYFLY_TOKEN', 'MAYFLY_TOKEN_FILE']
      : ['MAYFLY_CLIENT_ID', 'MAYFLY_CLIENT_SECRET', 'MAYFLY_CLIENT_SECRET_FILE']
  const set = names.filter((name) => givenOf(context.env[name]) !== undefined)
  return { name: 'login', value: kind, origin: `environment ${set.join(', ')}` }
}

function keychainSetting(context: Context): Setting {
  const keychain = findKeychain(context, context.globals.keychain !== false)
  const origin =
    context.globals.keychain === false
      ? 'flag --no-keychain'
      : context.env['MAYFLY_KEYCHAIN'] === 'off'
        ? 'environment MAYFLY_KEYCHAIN'
        : 'default'
  return { name: 'keychain', value: keychain?.title ?? 'off (secrets are in files)', origin }
}
