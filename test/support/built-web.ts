import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '..', '..')

const build = () =>
  promisify(execFile)(process.execPath, [join(ROOT, 'scripts/build.ts'), 'web'], { cwd: ROOT })
let built: ReturnType<typeof build> | undefined

/** Builds the console unless that was done: servers of these tests, which run from the sources, only read what is there. */
export async function buildWeb(): Promise<void> {
  built ??= build()
  await built
}

/** The paths of the files that the built page names itself. */
export async function filesOfPage(): Promise<string[]> {
  const page = await readFile(join(ROOT, 'dist/web/index.html'), 'utf8')
  return [...page.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
}
