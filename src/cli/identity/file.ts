import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemReason } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { type IdentitySource, noToken } from './source.ts'
import { MAX_TOKEN_BYTES, workloadOf } from './token.ts'

/** The name of a source that is a file: its path follows. */
export const FILE = 'file:'

/** A file that somebody else keeps up to date; `path` is relative to the working directory. */
export function fileSource({ cwd }: Pick<Context, 'cwd'>, path: string): IdentitySource {
  const whole = resolve(cwd, path)
  const title = `the file ${whole}`
  return {
    name: `${FILE}${whole}`,
    title,
    needs: `a token in ${whole}`,
    isHere: () => true,
    workload: () => workloadOf(readToken(title, whole)),
    token: async () => readToken(title, whole),
  }
}

/** The token in a file, which may be a link: Kubernetes points one at the newest version of a token. Throws `CliError`. */
export function readToken(title: string, path: string): string {
  try {
    // O_NONBLOCK: opening a pipe would wait for a writer.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const facts = fstatSync(file)
      if (!facts.isFile()) throw noToken(title, `${path} is not a file.`)
      if (facts.size > MAX_TOKEN_BYTES) throw noToken(title, `${path} has more than 16 KiB.`)
      return readFileSync(file, 'utf8').trim()
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const why = systemReason(error)
    throw why === undefined ? error : noToken(title, `${path}: ${why}.`, undefined, error)
  }
}
