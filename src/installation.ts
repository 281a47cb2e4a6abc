import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'

/** What depends on how Mayfly is installed. */
export interface Installation {
  readonly version: string
  /** The words that start this command. */
  readonly command: readonly string[]
  /** Starts the thread that writes the SQLite store. */
  startWriter(workerData: object): Worker
}

/** Runs from the sources. In a build, `cli/launch.ts` provides another one in place of this module. */
export const installation: Installation = {
  get version() {
    const { readFileSync } = process.getBuiltinModule('node:fs')
    const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
    return (JSON.parse(text) as { version: string }).version
  },
  command: [process.execPath, fileURLToPath(new URL('cli/main.ts', import.meta.url))],
  startWriter: (workerData) => {
    // Loaded here, because only the server needs it.
    const { Worker } = process.getBuiltinModule('node:worker_threads')
    return new Worker(new URL('store/sqlite/worker.ts', import.meta.url), { workerData })
  },
}
