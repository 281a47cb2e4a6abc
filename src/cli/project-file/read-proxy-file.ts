import { parseDuration } from '../../domain/duration.ts'
import { MAX_HEARTBEAT_MS, MAX_PURPOSE_LENGTH, MIN_HEARTBEAT_MS } from '../../domain/limits.ts'
import type { ConfigFile } from '../../files/yaml-file.ts'
import type { ProjectFile } from './open.ts'
import { readOwnWish } from './own-proxy-wish.ts'
import { PROJECT_FIELDS, type ProxyWish } from './proxy-wish.ts'
import { inWords, readCredentials } from './read.ts'
import type { RequestedCredential } from './requested-credential.ts'
import { Faults } from './shape.ts'

/** The configuration of a `mayfly proxy` that stands alone. */
export interface ProxyFile {
  readonly credentials: readonly RequestedCredential[]
  readonly wish: ProxyWish
  /** As it was written. */
  readonly envFile: string | undefined
  readonly purpose: string | undefined
  /** A duration as it was written. */
  readonly heartbeat: string | undefined
}

const FIELDS = ['credentials', ...PROJECT_FIELDS, 'listen', 'uids', 'env_file', 'purpose', 'heartbeat']

/** Throws `CliError` (usage) with every mistake and its line. */
export async function readProxyFile({ path, shown, bytes }: ProjectFile): Promise<ProxyFile> {
  const { readConfigFile } = await import('../../files/yaml-file.ts')
  try {
    return readFrom(await readConfigFile(path, shown, () => Promise.resolve(bytes)))
  } catch (error) {
    throw inWords(error, path, shown)
  }
}

function readFrom(file: ConfigFile): ProxyFile {
  const faults = new Faults(file)
  const { value } = file
  faults.unknownKeys([], value, FIELDS)
  const text = (key: string, isFit: (text: string) => boolean, message: string): string | undefined => {
    const given = value[key]
    if (given === undefined) return undefined
    if (typeof given === 'string' && isFit(given)) return given
    faults.add([key], `${key} must be ${message}`)
    return undefined
  }
  const read = {
    credentials: value['credentials'] === undefined ? [] : readCredentials(faults, file),
    wish: readOwnWish(faults, value),
    envFile: text('env_file', (path) => path !== '' && !path.includes('\0'), 'the path of a file'),
    purpose: text(
      'purpose',
      (purpose) => purpose !== '' && purpose.length <= MAX_PURPOSE_LENGTH,
      `a text of at most ${MAX_PURPOSE_LENGTH} characters`,
    ),
    heartbeat: text('heartbeat', isHeartbeat, 'a duration from 1s to 1h'),
  }
  if (faults.any()) throw faults.error()
  return read
}

function isHeartbeat(text: string): boolean {
  const ms = parseDuration(text)
  return ms !== undefined && ms >= MIN_HEARTBEAT_MS && ms <= MAX_HEARTBEAT_MS
}
