import type { Context } from '../frame/verb.ts'
import { findKeychain } from '../session/keychain.ts'
import { configPath } from '../session/paths.ts'
import { findLogin, givenOf, type Origin, readTarget, type Target } from '../session/session.ts'

export interface Setting {
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
export async function clientSettings(context: Context): Promise<Setting[]> {
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

const KINDS = {
  bearer: 'token',
  client_secret: 'client secret',
  private_key_jwt: 'enrolled key',
} as const

async function loginSetting(context: Context, target: Target): Promise<Setting> {
  const login = await findLogin(context, target)
  if (login === undefined) return { name: 'login', value: null, origin: 'default' }
  const kind = KINDS[login.auth.kind as keyof typeof KINDS] ?? login.auth.kind
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
