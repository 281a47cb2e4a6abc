import { open, readFile, realpath, stat } from 'node:fs/promises'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { CliError } from '../frame/failure.ts'
import { writePrivateFile } from '../session/private-file.ts'

/** Marks every script we write, so that we may replace it. */
const MARK = '# Made by mayfly'

/** A script that other tools run; it holds no secret. `by` is the command that wrote it. */
export function scriptFor(by: string, call: readonly string[]): string {
  return `#!/bin/sh\n${MARK}: ${by}\nexec ${call.map(shellWord).join(' ')} "$@"\n`
}

/** Writes an executable file. Throws `CliError` if another file is in the way. */
export async function writeProgram(path: string, text: string): Promise<void> {
  await refuseForeign(path)
  await writePrivateFile(path, text, 0o755)
}

/** Whether our script exists. Throws `CliError` if the file is not ours. */
export async function refuseForeign(path: string): Promise<boolean> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return false
  try {
    const { buffer } = await file.read(Buffer.alloc(512), 0, 512, 0)
    if (buffer.toString('latin1').includes(MARK)) return true
  } finally {
    await file.close()
  }
  throw new CliError('file_in_the_way', `${path} exists and was not written by mayfly.`, {
    hint: 'Move it away, or choose another path.',
  })
}

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
