import { fileURLToPath } from 'node:url'
import { shellQuote } from '../../src/domain/formats/shell-word.ts'

/** NODE_COMPILE_CACHE for commands from the sources: Node keeps compiled sources here, which halves their start. */
export const COMPILE_CACHE = fileURLToPath(
  new URL('../../node_modules/.cache/mayfly-compiled', import.meta.url),
)

/** A shell script that runs this source file as a command. */
export function commandScript(file: string): string {
  const [cache = '', node = '', source = ''] = [COMPILE_CACHE, process.execPath, file].map(shellQuote)
  return `#!/bin/sh\nNODE_COMPILE_CACHE=${cache} exec ${node} ${source} "$@"\n`
}
