import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CliError } from '../frame/failure.ts'
import { quote } from '../git/own-command.ts'

/** In all that we write, so that it may be written anew. */
const MARK = '# Made by mayfly'

/** A script that other tools run; it holds no secret. Whoever made it is in `by`. */
export function scriptFor(by: string, call: readonly string[]): string {
  return `#!/bin/sh\n${MARK}: ${by}\nexec ${call.map(quote).join(' ')} "$@"\n`
}

/** Writes a program that may be run, whole or not at all. Throws `CliError` where another file is in the way. */
export async function writeProgram(path: string, text: string): Promise<void> {
  await refuseForeign(path)
  await mkdir(dirname(path), { recursive: true })
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const file = await open(temporary, 'wx', 0o755)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    // The umask may have taken from it.
    await chmod(temporary, 0o755)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** Whether there is one of ours. Throws `CliError` for what is somebody else's. */
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
  throw new CliError('file_in_the_way', `${path} is there, and not made by mayfly.`, {
    hint: 'Move it away, or choose another path.',
  })
}
