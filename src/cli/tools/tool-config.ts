import { readFile, realpath, stat } from 'node:fs/promises'
import { writePrivateFile } from '../session/private-file.ts'

/** The text of another tool's configuration file; undefined if there is none. */
export async function readToolConfig(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}

/** Replaces the file, following links and keeping its mode. */
export async function writeToolConfig(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path)
  const mode = await stat(target).then(
    (facts) => facts.mode & 0o777,
    () => 0o600,
  )
  await writePrivateFile(target, text, mode)
}
