import { join, resolve } from 'node:path'
import { isObject, parseJson } from '../../domain/formats/json.ts'
import { CliError, usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { givenOf } from '../session/session.ts'
import { readToolConfig, writeToolConfig } from '../tools/program-file.ts'

/** docker's name for its own registry. */
const HUB = 'https://index.docker.io/v1/'
const HUB_NAMES = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io'])

/** A registry in canonical form: `registry.example.com[:port]`, or `docker.io`. Undefined if it is not a registry. */
export function registryOf(text: string): string | undefined {
  const url = /^https?:\/\//i.test(text) ? text : `https://${text}`
  if (!URL.canParse(url)) return undefined
  const { host, hostname, username, password } = new URL(url)
  if (username !== '' || password !== '' || hostname === '' || /[%*\s]/.test(host)) return undefined
  // `URL` drops the default port of the scheme; docker keeps it.
  const port = /:(80|443)(?:\/|$)/.exec(text.replace(/^https?:\/\//i, ''))?.[1]
  const name = port === undefined || host.endsWith(`:${port}`) ? host : `${host}:${port}`
  return HUB_NAMES.has(name) ? 'docker.io' : name
}

/** Throws `CliError` (usage). */
export function needRegistry(text: string): string {
  const host = registryOf(text)
  if (host !== undefined) return host
  throw usage(
    'The registry is not a valid host.',
    'Example: registry.example.com or registry.example.com:5000.',
  )
}

/** The registry's name in docker's configuration. */
export function configKey(host: string): string {
  return host === 'docker.io' ? HUB : host
}

/** The suffix of `docker-credential-mayfly`. */
const HELPER = 'mayfly'

interface DockerConfig {
  credHelpers?: Record<string, string>
  [name: string]: unknown
}

/** `$DOCKER_CONFIG/config.json`, or the one in the home directory. */
export function dockerConfigPath({ env, cwd, home }: Context): string {
  const directory = givenOf(env['DOCKER_CONFIG'])
  return join(directory === undefined ? join(home, '.docker') : resolve(cwd, directory), 'config.json')
}

/** Makes docker ask us for this registry. Throws `CliError` if docker asks another helper. */
export async function addHelper(context: Context, key: string): Promise<string> {
  const path = dockerConfigPath(context)
  const config = await read(path)
  const known = config.credHelpers?.[key]
  if (known === HELPER) return path
  if (known !== undefined)
    throw new CliError('other_helper', `docker already uses docker-credential-${known} for this registry.`, {
      hint: `First remove it from credHelpers in ${path}.`,
    })
  await write(path, { ...config, credHelpers: { ...config.credHelpers, [key]: HELPER } })
  return path
}

/** Does nothing if docker does not ask us. */
export async function removeHelper(context: Context, key: string): Promise<void> {
  const path = dockerConfigPath(context)
  const { credHelpers = {}, ...rest } = await read(path)
  if (credHelpers[key] !== HELPER) return
  const { [key]: _, ...others } = credHelpers
  await write(path, Object.keys(others).length === 0 ? rest : { ...rest, credHelpers: others })
}

async function read(path: string): Promise<DockerConfig> {
  const text = await readToolConfig(path)
  if (text === undefined) return {}
  const value = parseJson(text)
  if (isObject(value) && (value['credHelpers'] === undefined || isObject(value['credHelpers'])))
    return value as DockerConfig
  throw new CliError('docker_config_broken', `${path} is not a valid docker configuration.`, {
    hint: 'Correct the file first; nothing was changed.',
  })
}

/** Indented with tabs, as docker does. */
async function write(path: string, config: DockerConfig): Promise<void> {
  await writeToolConfig(path, `${JSON.stringify(config, null, '\t')}\n`)
}
