import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Compiles `src` into `dist`, unless `dist` is newer than all its sources. */
const root = join(import.meta.dirname, '..')
const stamp = join(root, 'dist', '.built')

function newest(path: string): number {
  const own = statSync(path).mtimeMs
  if (!statSync(path).isDirectory()) return own
  return Math.max(own, ...readdirSync(path).map((name) => newest(join(path, name))))
}

const sources = ['src', 'package.json', 'tsconfig.json', 'tsconfig.build.json'].map((name) =>
  join(root, name),
)
if (existsSync(stamp) && statSync(stamp).mtimeMs > Math.max(...sources.map(newest))) process.exit(0)

process.stderr.write('Compiling src into dist; this takes some seconds.\n')
rmSync(join(root, 'dist'), { recursive: true, force: true })
try {
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
} catch {
  process.exit(1)
}
writeFileSync(stamp, '')
