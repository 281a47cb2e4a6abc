import { posix } from 'node:path'
import { BadArchive, type PackedFile } from './tarball.ts'

/** The files of a package, from its root on: `npm pack` puts them into `package/`. */
export function packageRoot(files: readonly PackedFile[]): PackedFile[] {
  if (files.some(({ path }) => path === 'package.json')) return [...files]
  const [first = ''] = files[0]?.path.split('/') ?? []
  const isWrapped = files.every(({ path }) => path.startsWith(`${first}/`))
  if (!isWrapped) throw new BadArchive('it has no package.json at its root')
  return files.map(({ path, bytes }) => ({ path: path.slice(first.length + 1), bytes }))
}

/** The module that a package starts with, by its `exports` or `main`: a file of the package. Throws `BadArchive`. */
export function entryOf(files: readonly PackedFile[], folder = ''): string {
  const manifest = files.find(({ path }) => path === `${folder}package.json`)
  if (manifest === undefined) throw new BadArchive('it has no package.json at its root')
  const { exports, main } = parse(manifest.bytes)
  const named = target(exports) ?? (typeof main === 'string' ? main : 'index.js')
  const path = `${folder}${posix.normalize(named)}`
  const found = [path, `${path}.js`, `${path}/index.js`].find((one) =>
    files.some((file) => file.path === one),
  )
  if (found === undefined || posix.isAbsolute(named) || named.split('/').includes('..'))
    throw new BadArchive(`its package.json starts ${JSON.stringify(named)}, which is no file of the package`)
  return found
}

function parse(bytes: Uint8Array): { readonly exports?: unknown; readonly main?: unknown } {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
    if (typeof value === 'object' && value !== null) return value
  } catch {}
  throw new BadArchive('its package.json is no JSON object')
}

/** Of the conditions, those under which Node starts a module. */
const CONDITIONS = ['.', 'node', 'import', 'default']

function target(exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports
  if (typeof exports !== 'object' || exports === null) return undefined
  for (const condition of CONDITIONS) {
    const found = target(Reflect.get(exports, condition))
    if (found !== undefined) return found
  }
  return undefined
}
