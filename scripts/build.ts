import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildWeb } from './web/build-web.ts'
import { isNewerThan } from './web/newest.ts'

/**
 * Builds `dist`, each part unless it is newer than all its sources: the console in `dist/web`; the command in `dist/bin`,
 * and the modules of `exports` in package.json with their types. `node scripts/build.ts web` builds the console only.
 */
const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
const stamp = join(dist, '.built')
const sources = ['src', 'scripts/bundle', 'package.json', 'tsconfig.json', 'tsconfig.build.json'].map(
  (name) => join(root, name),
)

try {
  await buildWeb()
  if (process.argv[2] !== 'web' && !isNewerThan(stamp, sources)) await buildCommand()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

async function buildCommand(): Promise<void> {
  process.stderr.write('Building dist from src; this takes some seconds.\n')
  rmSync(stamp, { force: true })
  for (const name of existsSync(dist) ? readdirSync(dist) : [])
    if (!/^\.?web/.test(name)) rmSync(join(dist, name), { recursive: true })
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  // For the authors of plugins in other languages.
  const PROTOCOL = 'mayfly_plugin_v1.proto'
  copyFileSync(join(root, 'src', 'plugins', 'proto', PROTOCOL), join(dist, 'plugin-sdk', PROTOCOL))
  const { bundle } = await import('./bundle/bundle.ts')
  await bundle({ form: 'files', version, directory: join(dist, 'bin'), flags: [] })
  writeFileSync(stamp, '')
}
