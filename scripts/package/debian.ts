import { execFileSync, spawnSync } from 'node:child_process'
import { chmod, copyFile, cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const PACKAGING = join(import.meta.dirname, '..', '..', 'packaging')
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
/** What the executable of Node.js is linked with. */
const LIBRARIES = 'libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 8)'

export function hasDpkg(): boolean {
  return spawnSync('dpkg-deb', ['--version']).status === 0
}

/** Builds the Debian package around a tree that `writeTree` wrote; `work` is an empty directory. Returns its path. */
export async function buildDebian(
  version: string,
  tree: string,
  work: string,
  directory: string,
): Promise<string> {
  const root = join(work, 'debian')
  await cp(tree, join(root, 'usr'), { recursive: true, verbatimSymlinks: true })
  for (const unit of ['mayfly.service', 'mayfly-proxy@.service'])
    await install(unit, join(root, 'usr/lib/systemd/system'), 0o644)
  // No conffile: mayfly init writes to the copy in /etc/mayfly, about which an upgrade would ask.
  await install('mayfly.yaml', join(root, 'usr/share/mayfly'), 0o644)
  const control = join(root, 'DEBIAN')
  for (const name of ['postinst', 'prerm', 'postrm']) await install(`debian/${name}`, control, 0o755)
  const architecture = ARCHITECTURES[process.arch] ?? process.arch
  await writeFile(join(control, 'control'), controlOf(version, architecture, sizeOf(root)))
  const file = join(directory, `mayfly_${version}_${architecture}.deb`)
  // Every other compression takes minutes for an executable of this size, or is unknown to older versions of dpkg.
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zgzip', '--build', root, file], { stdio: 'ignore' })
  return file
}

async function install(name: string, directory: string, mode: number): Promise<void> {
  await mkdir(directory, { recursive: true })
  const file = join(directory, name.slice(name.lastIndexOf('/') + 1))
  await copyFile(join(PACKAGING, name), file)
  await chmod(file, mode)
}

/** In KiB, as Installed-Size says it. */
function sizeOf(root: string): number {
  return Number.parseInt(execFileSync('du', ['-sk', root]).toString(), 10)
}

function controlOf(version: string, architecture: string, size: number): string {
  return `Package: mayfly
Version: ${version}
Architecture: ${architecture}
Maintainer: The Mayfly developers
Section: admin
Priority: optional
Installed-Size: ${size}
Depends: ${LIBRARIES}, passwd
Description: short-lived credentials for agents, CI jobs and scripts
 Mayfly hands short-lived credentials to AI agents, CI jobs and scripts. Every
 credential is recorded, and expires or is revoked. This package contains the
 server, the command and units of systemd.
`
}
