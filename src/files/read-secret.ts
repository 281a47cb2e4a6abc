import { stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'
import { InvalidValue, quote } from '../domain/fault.ts'
import { shellWord } from '../domain/formats/shell-word.ts'
import { Secret } from '../domain/secret.ts'

export type ReadFile = (path: string) => Promise<Uint8Array>

const MAX_SECRET_BYTES = 65_536

/** Why a file cannot be read, without the system's own text. */
export function fileFault(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'ENOENT':
      return 'does not exist'
    case 'EACCES':
    case 'EPERM':
      return 'is not readable by this user'
    case 'EISDIR':
      return 'is a directory'
    default:
      return typeof code === 'string' ? `cannot be read (${code})` : 'cannot be read'
  }
}

/** What to run so that this user can read the file; empty if its rights are not the fault. */
export async function readFix(file: string, error: unknown): Promise<string> {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code !== 'EACCES' && code !== 'EPERM') return ''
  // `stat` fails if this user may not enter the directory.
  const isReached = await stat(file).then(
    () => true,
    () => false,
  )
  return isReached
    ? `. Run: sudo chown ${ownName()} ${shellWord(file)}`
    : `. Run: sudo chmod a+x ${shellWord(dirname(file))}`
}

export function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'mayfly')
  }
}

/** The text of a secret's file: UTF-8, without the final newline that editors and `echo` add. */
export function decodeSecret(bytes: Uint8Array, name: string): string {
  if (bytes.length > MAX_SECRET_BYTES) {
    throw new InvalidValue(`${name} is larger than ${MAX_SECRET_BYTES} bytes`)
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new InvalidValue(`${name} is not UTF-8 text`)
  }
  text = text.replace(/\r?\n$/, '')
  if (text.trim() === '') throw new InvalidValue(`${name} is empty`)
  if (text.includes('\0')) throw new InvalidValue(`${name} contains a NUL byte`)
  return text
}

/** Reads a secret from a file. Throws `InvalidValue`, which names the file and never its content. */
export async function readSecret(path: string, readFile: ReadFile): Promise<Secret> {
  let bytes: Uint8Array
  try {
    bytes = await readFile(path)
  } catch (error) {
    throw new InvalidValue(`the file ${quote(path)} ${fileFault(error)}${await readFix(path, error)}`)
  }
  return new Secret(decodeSecret(bytes, `the file ${quote(path)}`))
}
