import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type OutputOptions, type Plugin, rolldown } from 'rolldown'
import { PROGRAMS } from '../../src/cli/programs.ts'

const ROOT = join(import.meta.dirname, '..', '..')

export interface BundleOptions {
  /**
   * `files`: for the package of npm, which installs our dependencies beside it. `executable`: with everything in it, for
   * the executable.
   */
  readonly form: 'files' | 'executable'
  readonly version: string
  /** Must exist; the bundle is written into it. */
  readonly directory: string
  /** V8's flags at run time: compiled code is good for these only. */
  readonly flags: readonly string[]
}

/** What `mayfly get` loads, in one chunk: of all verbs, it has to start fastest. */
const FRONT = ['cli/start.ts', 'cli/frame/parse.ts', 'cli/commands/get.ts'].map((name) =>
  join(ROOT, 'src', name),
)

/** Those with licences stay. */
const COMMENTS = { legal: true, annotation: false, jsdoc: false }

/** `src/cli/launch.ts` provides this module. */
const installation: Plugin = {
  name: 'installation',
  resolveId: (source, importer = '') =>
    join(dirname(importer), source) === join(ROOT, 'src/installation.ts')
      ? { id: 'mayfly:installation', external: true }
      : null,
}

const RECIPES = join(ROOT, 'src/backends/http/builtin.ts')

/** The recipes as data, in place of the module that reads their files. */
export const recipes: Plugin = {
  name: 'recipes',
  load: async (id) =>
    id === RECIPES ? `export const RECIPES = ${JSON.stringify((await import(RECIPES)).RECIPES)}` : null,
}

/** In a chunk, `import` is an experiment of Node's `vm`: `launch.ts` gives it a function instead. */
const importOutside: Plugin = {
  name: 'import-outside',
  renderChunk: (code) => code.replace(/\bimport\((?=["'`])/g, 'importOutside('),
}

/** Bundles the command: `mayfly.cjs`, which loads the chunks beside it, and the thread of the store. */
export async function bundle(options: BundleOptions): Promise<void> {
  const { form, directory } = options
  await mkdir(directory, { recursive: true })
  await write(options, 'cli/start.ts', {
    entryFileNames: 'start.cjs',
    chunkFileNames: '[name]-[hash].cjs',
    codeSplitting: { groups: [{ name: 'front', test: (id) => FRONT.includes(id) }] },
    // A chunk is the text of a function: src/cli/load-chunks.ts.
    postBanner: '(function (exports, require, module, __filename, importOutside) {',
    postFooter: '})',
  })
  await writeAscii(directory)
  await write(options, 'store/sqlite/worker.ts', { entryFileNames: 'store-writer.cjs', codeSplitting: false })
  await write(options, 'cli/launch.ts', { entryFileNames: 'mayfly.cjs', codeSplitting: false })
  if (form === 'files') await writePrograms(directory)
  const compile = join(import.meta.dirname, 'compile.ts')
  execFileSync(process.execPath, [...options.flags, compile, directory], { stdio: 'inherit' })
}

async function write(
  { form, version, directory }: BundleOptions,
  entry: string,
  output: OutputOptions,
): Promise<void> {
  const built = await rolldown({
    input: join(ROOT, 'src', entry),
    platform: 'node',
    plugins: [installation, recipes, ...(entry === 'cli/start.ts' ? [importOutside] : [])],
    // A dynamic import that is also a static one elsewhere is a matter of the sources.
    checks: { ineffectiveDynamicImport: false },
    // A name is a package; of these, only the executable holds copies.
    ...(form === 'files' ? { external: /^[^./]/ } : {}),
    transform: {
      // An older Node must be able to read the file that tells it what to do.
      ...(entry === 'cli/launch.ts' ? { target: 'es2019' } : {}),
      define: { VERSION: JSON.stringify(version), IS_EXECUTABLE: String(form === 'executable') },
    },
  })
  try {
    await built.write({
      dir: directory,
      format: 'cjs',
      // `require` gives another default export than `import`. The executable imports nothing from outside but Node's own.
      dynamicImportInCjs: form === 'files',
      comments: COMMENTS,
      ...output,
    })
  } finally {
    await built.close()
  }
}

/** Node reads a text without other characters faster, and keeps it in half the memory. The chunk has no raw strings. */
async function writeAscii(directory: string): Promise<void> {
  const name = (await readdir(directory)).find((one) => one.startsWith('front-')) ?? ''
  const text = await readFile(join(directory, name), 'utf8')
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  await writeFile(join(directory, name), text.replace(/[\u0080-\uffff]/g, escaped))
}

async function writePrograms(directory: string): Promise<void> {
  for (const [name, verb] of Object.entries(PROGRAMS)) {
    const text = `#!/usr/bin/env node\nprocess.argv.splice(2, 0, '${verb}')\nrequire('./mayfly.cjs')\n`
    await writeFile(join(directory, `${name}.cjs`), text)
  }
  for (const name of ['mayfly', ...Object.keys(PROGRAMS)]) await chmod(join(directory, `${name}.cjs`), 0o755)
}
