import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'

/** Exit codes of a shell. */
export const NOT_FOUND = 127
export const NOT_EXECUTABLE = 126

/** Looks the command up as `execvp` does. Returns its path, or the exit code that explains why there is none. */
export async function findCommand(
  command: string,
  { path = '/usr/local/bin:/usr/bin:/bin', cwd }: { path: string | undefined; cwd: string },
): Promise<string | typeof NOT_FOUND | typeof NOT_EXECUTABLE> {
  if (command === '') return NOT_FOUND
  const candidates = command.includes('/')
    ? [resolve(cwd, command)]
    : path.split(delimiter).map((directory) => join(resolve(cwd, directory), command))
  let failure: typeof NOT_FOUND | typeof NOT_EXECUTABLE = NOT_FOUND
  for (const file of candidates) {
    const found = await examine(file)
    if (found === undefined) return file
    if (found === NOT_EXECUTABLE) failure = NOT_EXECUTABLE
  }
  return failure
}

async function examine(file: string): Promise<typeof NOT_FOUND | typeof NOT_EXECUTABLE | undefined> {
  try {
    if (!(await stat(file)).isFile()) return NOT_EXECUTABLE
    await access(file, constants.X_OK)
    return undefined
  } catch (error) {
    return (error as { code?: string }).code === 'EACCES' ? NOT_EXECUTABLE : NOT_FOUND
  }
}
