import { globSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip, constants as zlib } from 'node:zlib'
import { isNewerThan } from './newest.ts'
import { addPackagesOfStyles, LICENSES } from './packages.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const OUT = join(ROOT, 'dist', 'web')
const STAMP = join(OUT, '.built')
const SOURCES = ['web', 'src/client', 'src/api', 'src/domain', 'scripts/web', 'package.json', 'tsconfig.json']

/** Fonts and pictures are packed already. */
const PACKABLE = /\.(?:js|css|svg|json)$/

/**
 * Builds `dist/web` from `web`, unless it is newer than all its sources: the page, its files with a hash in their names,
 * and these once more as gzip and Brotli.
 */
export async function buildWeb(): Promise<void> {
  const sources = SOURCES.map((name) => join(ROOT, name))
  if (isNewerThan(STAMP, sources)) return
  process.stderr.write('Building dist/web from web; this takes some seconds.\n')
  // React has a larger form for everything else.
  process.env['NODE_ENV'] = 'production'
  const { build } = await import('vite')
  // Beside it, so that a server never finds half a build.
  const work = join(ROOT, 'dist', `.web-${process.pid}`)
  mkdirSync(work, { recursive: true })
  try {
    const root = join(ROOT, 'web')
    await build({
      root,
      configLoader: 'native',
      logLevel: 'warn',
      build: {
        outDir: work,
        emptyOutDir: true,
        license: { fileName: LICENSES },
        // A slow machine is nothing to warn of.
        rolldownOptions: { checks: { pluginTimings: false } },
      },
    })
    await Promise.all(
      globSync('assets/**', { cwd: work })
        .filter((name) => PACKABLE.test(name))
        .map((name) => pack(join(work, name))),
    )
    addPackagesOfStyles(work)
    await writeFile(join(work, '.built'), '')
    replace(OUT, work)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function replace(directory: string, next: string): void {
  rmSync(directory, { recursive: true, force: true })
  try {
    renameSync(next, directory)
  } catch (error) {
    // Another build of the same sources was as fast.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error
  }
}

async function pack(file: string): Promise<void> {
  const plain = await readFile(file)
  const params = { [zlib.BROTLI_PARAM_QUALITY]: 10, [zlib.BROTLI_PARAM_SIZE_HINT]: plain.length }
  const [gz, br] = await Promise.all([
    promisify(gzip)(plain, { level: 9 }),
    promisify(brotliCompress)(plain, { params }),
  ])
  await Promise.all([writeFile(`${file}.gz`, gz), writeFile(`${file}.br`, br)])
}
