import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseJson } from '../../domain/formats/json.ts'
import { NO_HOME, type Surroundings } from '../frame/surroundings.ts'
import { cachePath } from './paths.ts'
import { isPresent, readPrivateFile, writePrivateFile } from './private-file.ts'

type Where = Pick<Surroundings, 'env' | 'home' | 'cwd'>

/** The server that this user started last, for the hint of a command that finds none. */
export interface LastServer {
  /** Absolute, as is `config`. */
  readonly dataDir: string
  readonly config?: string | undefined
  /** `127.0.0.1:8620`. */
  readonly listen: string
}

const pathOf = (where: Where) => cachePath(where, 'last-server.json')

/**
 * Does nothing for a service (systemd sets INVOCATION_ID), which nobody starts by hand, and in the home directory of
 * another user, which sudo may keep. Never throws.
 */
export async function rememberServer(where: Where, started: LastServer): Promise<void> {
  if (where.env['INVOCATION_ID'] !== undefined || where.home === NO_HOME) return
  if (!(await isOwn(where.home))) return
  const { dataDir, config, listen } = started
  const value: LastServer = {
    dataDir: resolve(where.cwd, dataDir),
    config: config && resolve(where.cwd, config),
    listen,
  }
  await writePrivateFile(pathOf(where), `${JSON.stringify(value)}\n`).catch(() => {})
}

async function isOwn(directory: string): Promise<boolean> {
  const own = process.getuid?.()
  if (own === undefined) return true
  return stat(directory).then(
    ({ uid }) => uid === own,
    () => false,
  )
}

/** Undefined if there is none, or its data directory is gone. */
export async function readLastServer(where: Where): Promise<LastServer | undefined> {
  const text = await readPrivateFile(pathOf(where)).catch(() => undefined)
  const { dataDir, config, listen } = (parseJson(text ?? '') ?? {}) as Partial<LastServer>
  if (typeof dataDir !== 'string' || typeof listen !== 'string' || !(await isPresent(dataDir)))
    return undefined
  return { dataDir, listen, config: typeof config === 'string' ? config : undefined }
}
