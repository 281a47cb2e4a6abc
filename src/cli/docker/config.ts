import { readFile, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { writePrivateFile } from '../session/private-file.ts'
import { givenOf } from '../session/session.ts'

/** The suffix of `docker-credential-mayfly`. */
const HELPER = 'mayfly'

interface DockerConfig {
  credHelpers?: Record<string, string>
  [name: string]: unknown
}

/** `$DOCKER_CONFIG/config.json`, or that of the home directory. */
export function dockerConfigPath({ env, cwd, home }: Context): string {
  const directory = givenOf(env['DOCKER_CONFIG'])
  return join(directory === undefined ? join(home, '.docker') : resolve(cwd, directory), 'config.json')
}

/** Makes docker ask us for this registry. Throws `CliError` where it asks another helper. */
export async function addHelper(context: Context, key: string): Promise<string> {
  const path = dockerConfigPath(context)
  const config = await read(path)
  const known = config.credHelpers?.[key]
  if (known === HELPER) return path
  if (known !== undefined)
    throw new CliError('other_helper', `docker asks docker-credential-${known} for this registry.`, {
      hint: `Take it out of credHelpers in ${path} first.`,
    })
  await write(path, { ...config, credHelpers: { ...config.credHelpers, [key]: HELPER } })
  return path
}

/** Nothing happens where docker does not ask us. */
export async function removeHelper(context: Context, key: string): Promise<void> {
  const path = dockerConfigPath(context)
  const { credHelpers = {}, ...rest } = await read(path)
  if (credHelpers[key] !== HELPER) return
  const { [key]: _, ...others } = credHelpers
  await write(path, Object.keys(others).length === 0 ? rest : { ...rest, credHelpers: others })
}

async function read(path: string): Promise<DockerConfig> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return {}
    throw error
  }
  try {
    const value: unknown = JSON.parse(text)
    if (isPlain(value) && (value['credHelpers'] === undefined || isPlain(value['credHelpers'])))
      return value as DockerConfig
  } catch {
    // Told below.
  }
  throw new CliError('docker_config_broken', `${path} is not the JSON that docker reads.`, {
    hint: 'Mend it first; nothing was changed.',
  })
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** In place of what a link leads to, with the mode that it had; tabs, as docker writes it. */
async function write(path: string, config: DockerConfig): Promise<void> {
  const target = await realpath(path).catch(() => path)
  const mode = await stat(target).then(
    (facts) => facts.mode & 0o777,
    () => 0o600,
  )
  await writePrivateFile(target, `${JSON.stringify(config, null, '\t')}\n`, mode)
}
