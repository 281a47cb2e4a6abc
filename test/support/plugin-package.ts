import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..')

/** Builds `dist`, unless it is newer than its sources: a package imports what is built. */
export function buildMayfly(): void {
  execFileSync(process.execPath, [join(ROOT, 'scripts', 'build.ts')], { stdio: 'ignore' })
}

/** What `npm install` does in a package of `mayfly plugin new`, with what this checkout has. */
export function linkPackages(folder: string): void {
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  symlinkSync(ROOT, join(modules, 'mayfly'))
  for (const name of ['rolldown', '.bin/rolldown'])
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
}

if (import.meta.main) linkPackages(process.argv[2] ?? '')
