import { Script } from 'node:vm'

/** The parts that the build has split the command into. Each is the text of one function. */
export interface Chunks {
  text(name: string): string
  /** What V8 made of the text at build time. V8 ignores it if it is another version, or runs with other flags. */
  compiled(name: string): NodeJS.ArrayBufferView | undefined
  /** The name of the file, for stack traces. */
  path(name: string): string
  /** A module that is in no chunk. */
  outside(id: string): unknown
  /** The same by `import`, which `vm` offers only as an experiment, with a warning on each use. */
  importOutside(id: string): Promise<unknown>
}

type ChunkFunction = (
  exports: object,
  require: (id: string) => unknown,
  module: { exports: object },
  filename: string,
  importOutside: Chunks['importOutside'],
) => void

/**
 * Loads chunks as `require` loads files, each once, and with its compiled form: that is what makes the command start
 * fast. `onLoad` hears of each.
 */
export function chunkLoader(
  chunks: Chunks,
  onLoad: (name: string, script: Script) => void = () => undefined,
): (id: string) => object {
  const loaded = new Map<string, { exports: object }>()
  const load = (name: string): object => {
    const known = loaded.get(name)
    if (known !== undefined) return known.exports
    const module = { exports: {} }
    loaded.set(name, module)
    const cachedData = chunks.compiled(name)
    const script = new Script(chunks.text(name), {
      filename: chunks.path(name),
      ...(cachedData === undefined ? {} : { cachedData }),
    })
    onLoad(name, script)
    const run = script.runInThisContext() as ChunkFunction
    const require = (id: string) => (id.startsWith('./') ? load(id.slice(2)) : chunks.outside(id))
    run(module.exports, require, module, chunks.path(name), chunks.importOutside)
    return module.exports
  }
  return load
}
