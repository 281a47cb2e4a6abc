import { fileURLToPath } from 'node:url'

/** NODE_COMPILE_CACHE for commands from the sources: Node keeps compiled sources here, which halves their start. */
export const COMPILE_CACHE = fileURLToPath(
  new URL('../../node_modules/.cache/mayfly-compiled', import.meta.url),
)
