import { readFile, stat } from 'node:fs/promises'
import { CliError } from '../../cli/frame/failure.ts'

/** The configuration file as it is. */
export interface Before {
  /** Empty if there is no file. */
  readonly text: string
  /** What the package sets for every installation. */
  readonly listen: string | undefined
  readonly dataDir: string | undefined
  /** Undefined if there is no file. */
  readonly facts: { readonly mode: number; readonly uid: number; readonly gid: number } | undefined
}

const OF_THE_PACKAGE = ['listen', 'data_dir']

/** Throws `CliError` for a file that somebody has filled in, and `ConfigError` for one that is no YAML. */
export async function readBefore(file: string): Promise<Before> {
  const bytes = await readFile(file).catch((error: { code?: string }) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (bytes === undefined) return { text: '', listen: undefined, dataDir: undefined, facts: undefined }
  const { parseConfigText } = await import('../../files/yaml-file.ts')
  const text = bytes.toString('utf8')
  const { value } = parseConfigText(file, text)
  if (Object.keys(value).some((key) => !OF_THE_PACKAGE.includes(key)))
    throw new CliError('configured', `${file} has settings already, and is unchanged.`, {
      hint: 'Edit it and restart the server, or choose another file with --config.',
    })
  const { mode, uid, gid } = await stat(file)
  return {
    text,
    listen: textOf(value['listen']),
    dataDir: textOf(value['data_dir']),
    facts: { mode, uid, gid },
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
