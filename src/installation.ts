import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { readTree } from './files/read-tree.ts'

export interface ModuleCommand {
  readonly words: readonly string[]
  readonly environment: Readonly<Record<string, string>>
}

/** What depends on how Mayfly is installed. */
export interface Installation {
  readonly version: string
  /** The words that start this command. */
  readonly command: readonly string[]
  /** The command that runs a module with these flags of Node, and the variables that it needs. */
  moduleCommand(flags: readonly string[], entry: string): ModuleCommand
  /** Starts the thread that writes the SQLite store. */
  startWriter(workerData: object): Worker
  /** The files of the console by their paths, such as `assets/index-1a2b3c4d.js.br`. None if it was not built. */
  consoleFiles(): ReadonlyMap<string, Buffer>
}

/** Runs from the sources. In a build, `cli/launch.ts` provides another one in place of this module. */
export const installation: Installation = {
  get version() {
    const { readFileSync } = process.getBuiltinModule('node:fs')
    const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
    return (JSON.parse(text) as { version: string }).version
  },
  command: [process.execPath, fileURLToPath(new URL('cli/main.ts', import.meta.url))],
  moduleCommand: (flags, entry) => ({ words: [process.execPath, ...flags, entry], environment: {} }),
  startWriter: (workerData) => {
    // Loaded here, because only the server needs it.
    const { Worker } = process.getBuiltinModule('node:worker_threads')
    return new Worker(new URL('store/sqlite/worker.ts', import.meta.url), { workerData })
  },
  consoleFiles: () => readTree(fileURLToPath(new URL('../dist/web', import.meta.url))),
}
