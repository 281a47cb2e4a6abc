import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = join(import.meta.dirname, '..', '..')
const SOURCES = join(ROOT, 'src')
const KEPT = join(ROOT, 'node_modules/.cache/mayfly-joined')
const UNUSED_MS = 24 * 60 * 60_000

let main: string | undefined

/**
 * The command for tests that start servers: the sources and their libraries, joined into a few files, because half of a
 * start from the sources goes into finding their 2,200 modules. Joined again when the sources have changed.
 */
export function joinedMain(): string {
  main ??= join(joined(), 'main.mjs')
  return main
}

function joined(): string {
  const directory = join(KEPT, stateOfSources())
  if (!existsSync(directory)) {
    removeUnused()
    execFileSync(process.execPath, [fileURLToPath(import.meta.url), directory], { stdio: 'inherit' })
  }
  utimesSync(directory, new Date(), new Date())
  return directory
}

/** Of this work tree: others may share its libraries. */
function stateOfSources(): string {
  const names = readdirSync(SOURCES, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
  const hash = createHash('sha256')
  for (const name of [...names.sort(), join(ROOT, 'package-lock.json'), fileURLToPath(import.meta.url)])
    hash.update(`${name}\n`).update(readFileSync(name))
  return hash.digest('hex').slice(0, 16)
}

function removeUnused(): void {
  for (const name of existsSync(KEPT) ? readdirSync(KEPT) : []) {
    const directory = join(KEPT, name)
    const used = statSync(directory, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (used < Date.now() - UNUSED_MS) rmSync(directory, { recursive: true, force: true })
  }
}

async function joinSources(directory: string): Promise<void> {
  const [{ rolldown }, { recipes }] = await Promise.all([
    import('rolldown'),
    import('../../scripts/bundle/bundle.ts'),
  ])
  const built = await rolldown({
    input: join(SOURCES, 'cli/main.ts'),
    platform: 'node',
    plugins: [
      recipes,
      // What a module names beside itself stays where it is, such as the store's thread.
      {
        name: 'places',
        transform: (code, id) =>
          id.startsWith(SOURCES)
            ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
            : null,
      },
    ],
    checks: { ineffectiveDynamicImport: false },
  })
  const draft = `${directory}.${process.pid}`
  await built.write({
    dir: draft,
    format: 'esm',
    entryFileNames: 'main.mjs',
    chunkFileNames: '[name]-[hash].mjs',
  })
  await built.close()
  try {
    renameSync(draft, directory)
  } catch (error) {
    // Another worker was faster.
    rmSync(draft, { recursive: true })
    if (!existsSync(directory)) throw error
  }
}

if (import.meta.main) await joinSources(process.argv[2] ?? '')
