import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Context } from '../../cli/frame/verb.ts'
import { runGit } from '../../cli/git/run-git.ts'
import { readInForce } from '../../cli/git/settings.ts'
import { findKeychain } from '../../cli/session/keychain.ts'
import { cachePath, configPath } from '../../cli/session/paths.ts'
import { readProfiles } from '../../cli/session/profiles.ts'
import { givenOf } from '../../cli/session/session.ts'
import { adminSocketOf } from '../../files/admin-socket.ts'
import { type Finding, fail, failed, ok, warn } from './finding.ts'

const NODE_MAJOR = 24

export function checkNode(version = process.versions.node): Finding {
  return Number(version.split('.')[0]) >= NODE_MAJOR
    ? ok('node', `Node.js ${version}.`)
    : fail('node', `Node.js ${version} is too old.`, `Install ${NODE_MAJOR} or later.`)
}

/** Checks that only this user can read the files of this command. */
export async function checkFiles(context: Context): Promise<Finding[]> {
  const findings: Finding[] = []
  await readProfiles(context).catch((error: unknown) => findings.push(failed('profiles', error)))
  const open = [
    ...(await openToOthers(configPath(context))),
    ...(await openToOthers(cachePath(context))),
    ...(await openSecretFiles(context)),
  ]
  findings.push(
    ...open.map((path) => fail('files', `${path} can be read by other users.`, `Run: chmod go-rwx ${path}`)),
  )
  return findings.length > 0 ? findings : [ok('files', 'Only you can read your files.')]
}

async function openToOthers(directory: string): Promise<string[]> {
  const names = await readdir(directory, { recursive: true }).catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined
    throw error
  })
  if (names === undefined) return []
  const all = [directory, ...names.map((name) => join(directory, name))]
  const open = await Promise.all(all.map(async (path) => ((await isOpen(path)) ? [path] : [])))
  return open.flat()
}

/** Checks the files that environment variables name. */
async function openSecretFiles({ env, cwd }: Context): Promise<string[]> {
  const open: string[] = []
  for (const name of ['MAYFLY_TOKEN_FILE', 'MAYFLY_CLIENT_SECRET_FILE']) {
    const path = givenOf(env[name])
    if (path !== undefined && (await isOpen(resolve(cwd, path)))) open.push(path)
  }
  return open
}

/** Windows has no file modes. A file that is gone is not open. */
async function isOpen(path: string): Promise<boolean> {
  if (process.getuid === undefined) return false
  return stat(path).then(
    ({ mode }) => (mode & 0o077) !== 0,
    () => false,
  )
}

export async function checkKeychain(context: Context): Promise<Finding> {
  const keychain = findKeychain(context, context.globals.keychain !== false)
  if (keychain === undefined) return ok('keychain', 'No keychain; secrets are in files of mode 0600.')
  try {
    await keychain.load('doctor/probe')
    return ok('keychain', `Secrets are in ${keychain.title}.`)
  } catch (error) {
    return failed('keychain', error)
  }
}

/** Checks the data directory of a server on this machine. */
export async function checkDataDir({ globals, env, cwd }: Context): Promise<Finding[]> {
  const named = globals.dataDir ?? givenOf(env['MAYFLY_DATA_DIR'])
  const directory = resolve(cwd, named ?? './mayfly-data')
  const isThere = await stat(directory).then(
    (facts) => facts.isDirectory(),
    () => false,
  )
  if (!isThere)
    return named === undefined
      ? []
      : [warn('data directory', `${named} does not exist.`, 'Give the data_dir of the server.')]
  const paths = [directory, adminSocketOf(directory), join(directory, 'master.key')]
  const open: string[] = []
  for (const path of paths) if (await isOpen(path)) open.push(path)
  if (open.length === 0) return [ok('data directory', `Only its user can read ${directory}.`)]
  return open.map((path) =>
    fail('data directory', `${path} can be read by other users.`, `Run: chmod go-rwx ${path}`),
  )
}

/** Checks that git works, and is set up for Mayfly. */
export async function checkGit(context: Context): Promise<Finding> {
  try {
    const { stdout } = await runGit(context, ['--version'])
    const { signing, hosts } = await readInForce(context)
    const version = stdout.trim()
    if (signing === undefined && hosts.length === 0)
      return ok('git', `${version}, not set up for Mayfly (see \`mayfly git setup --help\`).`)
    const gone = signing === undefined ? undefined : await goneProgram(context, signing.program)
    if (gone !== undefined)
      return fail('git', `gpg.program is ${gone}, which does not exist.`, 'Run `mayfly git setup` again.')
    const urls = hosts.map(({ url }) => url).join(', ')
    const parts = [
      urls === '' ? undefined : `credentials for ${urls}`,
      signing === undefined ? undefined : 'signing',
    ]
    return ok('git', `${version}: ${parts.filter((one) => one !== undefined).join(' and ')}.`)
  } catch (error) {
    return failed('git', error, 'warn')
  }
}

async function goneProgram({ cwd }: Context, program: string): Promise<string | undefined> {
  if (!program.includes('/')) return undefined
  return stat(resolve(cwd, program)).then(
    () => undefined,
    () => program,
  )
}
