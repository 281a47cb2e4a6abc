import { InvalidValue } from '../domain/fault.ts'
import { Secret } from '../domain/secret.ts'
import { type ReadFile, readSecret } from '../files/read-secret.ts'

/** Of a fault in an entry, or in the list of entries. */
export type Place = readonly (string | number)[]
export type Note = (path: Place, message: string) => void

/** Checks the entries of a list and reports every fault with its place. Entries with faults are left out. */
export function checkEntries<Entry, Checked>(
  entries: readonly Entry[],
  report: (fault: InvalidValue) => void,
  check: (entry: Entry, note: Note) => Checked | undefined,
): Checked[] {
  return entries.flatMap((entry, index) => {
    let isSound = true
    const note: Note = (path, message) => {
      isSound = false
      report(new InvalidValue(message, [index, ...path]))
    }
    const checked = check(entry, note)
    return isSound && checked !== undefined ? [checked] : []
  })
}

/** Notes the `InvalidValue` that `work` throws; then the result is undefined. */
export function noting<T>(note: Note, path: Place, work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error
    note([...path, ...error.path], error.message)
    return undefined
  }
}

/** Reads a file that an entry names. Notes what is wrong with it, never its content; then the secret is empty. */
export async function readNoting(
  file: string,
  readFile: ReadFile,
  check: (text: string) => void,
  note: (message: string) => void,
): Promise<Secret> {
  try {
    const secret = await readSecret(file, readFile)
    check(secret.reveal())
    return secret
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error
    note(error.message)
    return new Secret('')
  }
}
