import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Mounts a tmpfs on the directory; `options` are those of `mount -o`. Throws if the system refuses. */
export function mountMemory(directory: string, options: string): void {
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory])
  if (status !== 0) throw new Error(`mount: ${stderr}`)
}

export function unmount(directory: string): void {
  spawnSync('umount', [directory])
}

/** Only root may mount, and not in every container. */
export const canMount = ((): boolean => {
  const directory = mkdtempSync(join(tmpdir(), 'mayfly-mount-'))
  try {
    mountMemory(directory, 'size=64k')
    unmount(directory)
    return true
  } catch {
    return false
  } finally {
    rmdirSync(directory)
  }
})()
