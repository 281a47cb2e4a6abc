import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundle } from './bundle/bundle.ts'

/**
 * Builds `dist`, unless it is newer than all its sources: the command in `dist/bin`, and the modules of `exports` in
 * package.json with their types.
 */
const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const stamp = join(dist, '.built')

function newest(path: string): number {
  const own = statSync(path).mtimeMs
  if (!statSync(path).isDirectory()) return own
  return Math.max(own, ...readdirSync(path).map((name) => newest(join(path, name))))
}

const sources = ['src', 'scripts/bundle', 'package.json', 'tsconfig.json', 'tsconfig.build.json'].map(
  (name) => join(root, name),
)
if (existsSync(stamp) && statSync(stamp).mtimeMs > Math.max(...sources.map(newest))) process.exit(0)

process.stderr.write('Building dist from src; this takes some seconds.\n')
rmSync(dist, { recursive: true, force: true })
try {
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
} catch {
  process.exit(1)
}
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
// For the authors of plugins in other languages.
const PROTOCOL = 'mayfly_plugin_v1.proto'
copyFileSync(join(root, 'src', 'plugins', 'proto', PROTOCOL), join(dist, 'plugin-sdk', PROTOCOL))
await bundle({ form: 'files', version, directory: join(dist, 'bin'), flags: [] })
writeFileSync(stamp, '')
