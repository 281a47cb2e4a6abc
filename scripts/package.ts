import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildDebian, hasDpkg } from './package/debian.ts'
import { writeTree } from './package/tree.ts'

/**
 * Builds the packages: the executable with its manual and completions as a tar archive, and as a Debian package. It needs
 * the packages of npm, tar, and dpkg-deb for the second.
 */
const ROOT = join(import.meta.dirname, '..')
const { values } = parseArgs({ options: { version: { type: 'string' }, out: { type: 'string' } } })
const version =
  values.version ??
  (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version
const out = values.out ?? join(ROOT, 'dist-package')

mkdirSync(out, { recursive: true })
const work = mkdtempSync(join(tmpdir(), 'mayfly-package-'))
try {
  const name = `mayfly-${version}-${process.platform}-${process.arch}`
  const tree = join(work, name)
  await writeTree(version, work, tree)
  if (hasDpkg()) finish(await buildDebian(version, tree, work, out))
  else console.error('dpkg-deb is missing, so there is no Debian package. On Debian: apt-get install dpkg')
  // What the Debian package installs by itself.
  for (const file of ['mayfly.service', 'mayfly-proxy@.service', 'mayfly.yaml'])
    cpSync(join(ROOT, 'packaging', file), join(tree, 'share/doc/mayfly', file))
  const archive = join(out, `${name}.tar.gz`)
  execFileSync('tar', ['-C', work, '--owner=0', '--group=0', '-czf', archive, name])
  finish(archive)
} finally {
  rmSync(work, { recursive: true, force: true })
}

/** Writes the SHA-256 beside the file, as `sha256sum -c` reads it. */
function finish(file: string): void {
  const digest = createHash('sha256').update(readFileSync(file)).digest('hex')
  writeFileSync(`${file}.sha256`, `${digest}  ${basename(file)}\n`)
  console.log(file)
}
