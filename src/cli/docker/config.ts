import { join, resolve } from 'node:path'
import { isObject, parseJson } from '../../domain/json.ts'
import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { givenOf } from '../session/session.ts'
import { readToolConfig, writeToolConfig } from '../tools/tool-config.ts'

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
