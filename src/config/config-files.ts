import { readdir } from 'node:fs/promises'
import { ConfigError, quote } from '../domain/fault.ts'
import { fileFault, type ReadFile, readFix } from '../files/read-secret.ts'
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
  const main = readConfigFile(file, origin, readFile)
  const [, listed] = await Promise.allSettled([main, readDirectory(directory)])
  if (listed.status === 'rejected' && codeOf(listed.reason) !== 'ENOENT') {
    // A file in the same closed directory says more.
    await main
    const why = `the directory ${quote(directory)} ${fileFault(listed.reason)}`
    throw new ConfigError([{ source: directory, message: why + (await readFix(directory, listed.reason)) }])
  }
  const names = listed.status === 'fulfilled' ? listed.value : []
  const added = names.filter((name) => IS_DROP_IN.test(name)).sort()
  const dropIns = added.map((name) => readConfigFile(`${directory}/${name}`, directory, readFile))
  const all = await Promise.allSettled([main, ...dropIns].reverse())
  const faults = all.flatMap((one) => {
    if (one.status === 'fulfilled') return []
    if (one.reason instanceof ConfigError) return one.reason.faults
    throw one.reason
  })
  if (faults.length > 0) throw new ConfigError(faults)
  return all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}

const codeOf = (error: unknown) => (error as { code?: unknown }).code
