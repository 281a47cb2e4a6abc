import { MAX_ARTEFACT_BYTES } from '../../app/plugins/artefacts.ts'
import { isArchive } from '../../app/plugins/tarball.ts'
import { CliError, usage } from '../../cli/frame/failure.ts'

/** What is to be added, in memory. */
export interface Artefact {
  readonly bytes: Uint8Array
  /** For the store and the audit: without directories, users, queries. */
  readonly origin: string
  /** The name of the file; `creddy-…` is of the protocol of that name. */
  readonly file: string
}

export const tooLarge = (source: string) =>
  new CliError('too_large', `${source} is larger than ${MAX_ARTEFACT_BYTES / 1024 / 1024} MiB.`, {
    hint: 'Give the plugin alone, without what it is built from.',
  })

/** How the server starts it, by its content and, for a module, its name. Throws `CliError`. */
export function runtimeOf({ bytes, file }: Artefact): 'executable' | 'node' {
  if (isArchive(bytes) || /\.(?:[cm]?js)$/.test(file)) return 'node'
  const head = Buffer.from(bytes.subarray(0, 4)).toString('hex')
  const isProgram =
    head === '7f454c46' || head.startsWith('2321') || /^(?:cf|ce)faedfe$|^cafebabe$/.test(head)
  if (isProgram) return 'executable'
  throw usage(
    `${file} is neither a program, nor a module (.js, .mjs), nor a package (.tgz).`,
    'TypeScript must be compiled first; a folder becomes a package with `npm pack`.',
  )
}
