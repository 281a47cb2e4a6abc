import { readdir } from 'node:fs/promises'
import { ConfigError, quote } from '../domain/fault.ts'
import { fileFault, type ReadFile } from '../files/read-secret.ts'
import { type ConfigFile, readConfigFile } from '../files/yaml-file.ts'

/** Beside the configuration file: what adds to it and goes before it. */
const DROP_INS = 'conf.d'
/** Not the files of editors and of dpkg. */
const IS_DROP_IN = /^[^.].*\.yaml$/

export interface ReadFiles {
  readonly readFile: ReadFile
  /** The names in a directory. Those of this process if absent. */
  readonly readDirectory?: (path: string) => Promise<readonly string[]>
}

/**
 * The configuration file and the `conf.d/*.yaml` beside it, the one that decides first: of two drop-ins, that with the later name. Throws
 * `ConfigError` with the faults of all.
 */
export async function readConfigFiles(
  file: string,
  origin: string,
  { readFile, readDirectory = readdir }: ReadFiles,
): Promise<ConfigFile[]> {
  const directory = `${file.slice(0, file.lastIndexOf('/') + 1)}${DROP_INS}`
  const names = await readDirectory(directory).catch((error: unknown) => {
    if ((error as { code?: unknown }).code === 'ENOENT') return []
    throw new ConfigError([
      { source: directory, message: `the directory ${quote(directory)} ${fileFault(error)}` },
    ])
  })
  const added = names.filter((name) => IS_DROP_IN.test(name)).sort()
  const sources = [
    { path: file, origin },
    ...added.map((name) => ({ path: `${directory}/${name}`, origin: directory })),
  ].reverse()
  const all = await Promise.allSettled(sources.map((one) => readConfigFile(one.path, one.origin, readFile)))
  const faults = all.flatMap((one) => {
    if (one.status === 'fulfilled') return []
    if (one.reason instanceof ConfigError) return one.reason.faults
    throw one.reason
  })
  if (faults.length > 0) throw new ConfigError(faults)
  return all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}
