#!/usr/bin/env node
import { readTree } from '../files/read-tree.ts'
import type { Installation } from '../installation.ts'
import { type Chunks, chunkLoader } from './load-chunks.ts'
import { checkNode } from './node-version.ts'
import { PROGRAMS } from './programs.ts'
import { RUN_MODULE, runModule } from './run-module.ts'

/** Set by the build (scripts/bundle/bundle.ts). */
declare const VERSION: string
declare const IS_EXECUTABLE: boolean

/** The store's writer, which is not a chunk: it runs in a thread of its own. */
const WRITER = 'store-writer.cjs'
/** What the names of the console's files begin with in the executable. */
const WEB = 'web/'

/** The build is a directory of files, beside this one. */
function inFiles(): { chunks: Chunks; installation: Installation } {
  const { existsSync, readFileSync } = process.getBuiltinModule('node:fs')
  const path = (name: string) => `${__dirname}/${name}`
  const compiled = (name: string) => {
    const file = path(`${name}.compiled`)
    return existsSync(file) ? readFileSync(file) : undefined
  }
  const installation: Installation = {
    version: VERSION,
    command: [process.execPath, __filename],
    moduleCommand: (flags, entry) => ({ words: [process.execPath, ...flags, entry], environment: {} }),
    startWriter: (workerData) => {
      const { Worker } = process.getBuiltinModule('node:worker_threads')
      return new Worker(path(WRITER), { workerData })
    },
    consoleFiles: () => readTree(path('../web')),
  }
  return {
    chunks: {
      text: (name) => readFileSync(path(name), 'utf8'),
      compiled,
      path,
      outside: require,
      importOutside: (id) => import(id),
    },
    installation,
  }
}

/** The build is inside the executable, and takes no code from anywhere else. */
function inExecutable(): { chunks: Chunks; installation: Installation } {
  const { getRawAsset, getAssetKeys } = process.getBuiltinModule('node:sea')
  const known = new Set(getAssetKeys())
  // Not by getAsset, which loads a decoder.
  const text = (name: string) => Buffer.from(getRawAsset(name)).toString()
  const compiled = (name: string) => {
    const asset = `${name}.compiled`
    return known.has(asset) ? new Uint8Array(getRawAsset(asset)) : undefined
  }
  const outside = (id: string) => {
    const found = process.getBuiltinModule(id)
    if (found !== undefined) return found
    // Libraries try modules that they can do without, and know this code.
    throw Object.assign(new Error(`${id} is not part of Mayfly`), { code: 'MODULE_NOT_FOUND' })
  }
  const installation: Installation = {
    version: VERSION,
    command: [process.execPath],
    moduleCommand: (flags, entry) => ({
      words: [process.execPath, RUN_MODULE, entry],
      environment: { NODE_OPTIONS: flags.map(quoteOption).join(' ') },
    }),
    startWriter: (workerData) => {
      const { Worker } = process.getBuiltinModule('node:worker_threads')
      return new Worker(text(WRITER), { eval: true, workerData })
    },
    consoleFiles: () => {
      const names = [...known].filter((name) => name.startsWith(WEB))
      return new Map(names.map((name) => [name.slice(WEB.length), Buffer.from(getRawAsset(name))]))
    },
  }
  return {
    chunks: {
      text,
      compiled,
      path: (name) => `mayfly:${name}`,
      outside,
      // The bundle turns each `import` into `require` there.
      importOutside: async (id) => outside(id),
    },
    installation,
  }
}

/** As NODE_OPTIONS reads it (Node.js, command-line API, NODE_OPTIONS). */
const quoteOption = (flag: string) => `"${flag.replace(/["\\]/g, '\\$&')}"`

function launch(): void {
  const { chunks, installation } = IS_EXECUTABLE ? inExecutable() : inFiles()
  const program = IS_EXECUTABLE
    ? PROGRAMS[process.argv0.slice(process.argv0.lastIndexOf('/') + 1)]
    : undefined
  if (program !== undefined) process.argv.splice(2, 0, program)
  const outside = (id: string) => (id === 'mayfly:installation' ? { installation } : chunks.outside(id))
  const load = chunkLoader({ ...chunks, outside })
  void (load('start.cjs') as { start(): Promise<void> }).start()
}

const [, , word, entry = ''] = process.argv
if (IS_EXECUTABLE && word === RUN_MODULE) runModule(entry)
else if (checkNode()) launch()
