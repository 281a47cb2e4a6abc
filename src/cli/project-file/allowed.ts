import { basename, dirname, join } from 'node:path'
import { parseJson } from '../../domain/formats/json.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { CliError } from '../frame/failure.ts'
import { NO_HOME, type Surroundings } from '../frame/surroundings.ts'
import { configPath } from '../session/paths.ts'
import { isPresent, readPrivateFile, removeFile, writePrivateFile } from '../session/private-file.ts'
import { digest } from '../session/token-cache.ts'
import { OLD_PROJECT_FILE, PROJECT_FILE, type ProjectFile } from './open.ts'

type Where = Pick<Surroundings, 'env' | 'home'>

/** What a person allowed. */
export interface Allowed {
  readonly path: string
  /** Of the allowed bytes, in hex. */
  readonly sha256: string
  /** The allowed content, to show what has changed since. */
  readonly text: string
}

/** Undefined if no content was ever allowed at this path, or under the old name of the file. */
export async function readAllowed(where: Where, path: string): Promise<Allowed | undefined> {
  const [record, ...former] = recordsOf(where, path)
  let text = await readPrivateFile(record)
  for (const old of former) text ??= await readPrivateFile(old)
  const allowed = parseJson(text ?? '') as Partial<Allowed> | null | undefined
  // Half a file is no permission.
  return allowed ? { path, sha256: String(allowed.sha256), text: String(allowed.text) } : undefined
}

export async function recordAllowed(where: Where, { path, bytes }: ProjectFile): Promise<void> {
  const allowed: Allowed = { path, sha256: sha256Of(bytes), text: Buffer.from(bytes).toString('utf8') }
  const [record] = recordsOf(where, path)
  if (record.startsWith(`${NO_HOME}/`))
    throw new CliError('no_home', 'There is no home directory to remember this in.', {
      hint: 'Set HOME, or trust the directory with `mayfly run --trust-project`.',
    })
  await writePrivateFile(record, `${JSON.stringify(allowed, null, 2)}\n`)
}

/** Returns false if there was nothing to take back. */
export async function revokeAllowed(where: Where, path: string): Promise<boolean> {
  let was = false
  for (const record of recordsOf(where, path)) {
    was = (await isPresent(record)) || was
    await removeFile(record)
  }
  return was
}

export function isAllowed(allowed: Allowed | undefined, { bytes }: ProjectFile): boolean {
  return allowed?.sha256 === sha256Of(bytes)
}

/** Throws `CliError` unless exactly this content was allowed at this path. */
export async function requireAllowed(where: Where, file: ProjectFile): Promise<void> {
  const allowed = await readAllowed(where, file.path)
  if (isAllowed(allowed, file)) return
  const command = file.shown === PROJECT_FILE ? 'mayfly allow' : `mayfly allow ${shellWord(file.shown)}`
  throw allowed === undefined
    ? new CliError('project_not_allowed', `${file.shown} is not allowed.`, {
        exit: 2,
        hint: `Run \`${command}\` to see what it asks for and allow it, or trust the directory with --trust-project.`,
      })
    : new CliError('project_changed', `${file.shown} has changed since it was allowed.`, {
        exit: 2,
        hint: `Run \`${command}\` to see the difference and allow it.`,
      })
}

/** What was allowed as `mayfly.yaml` is allowed, with the same content, under the name of today. */
function recordsOf(where: Where, path: string): [string, ...string[]] {
  const recordOf = (one: string) => configPath(where, 'allowed', `${digest(one)}.json`)
  const former = basename(path) === PROJECT_FILE ? [join(dirname(path), OLD_PROJECT_FILE)] : []
  return [recordOf(path), ...former.map(recordOf)]
}

function sha256Of(bytes: Uint8Array): string {
  // Loaded here, because most runs do not need it.
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(bytes).digest('hex')
}
