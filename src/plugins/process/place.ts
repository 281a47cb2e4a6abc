import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PREFIX = 'mayfly-plugin-'
const NAME = new RegExp(`^${PREFIX}(\\d+)-`)

/** Makes a directory that only its owner reads (0700) and that carries the process that made it. Returns its path without links. */
export function newPlace(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`)))
}

/** Removes the places of servers that were killed before they could do it. Those of other users stay. */
export async function removeAbandonedPlaces(): Promise<void> {
  const directory = tmpdir()
  for (const name of await readdir(directory)) {
    const pid = Number(NAME.exec(name)?.[1] ?? Number.NaN)
    const path = join(directory, name)
    // Unlike `rm`, it never follows a link that a process of the plugin puts in its way.
    if (!Number.isNaN(pid) && (await isAbandoned(path, pid, 'directory')))
      rmSync(path, { recursive: true, force: true })
  }
}

/** Whether a file or directory of ours was made by a process that carried this number, and is gone. */
export async function isAbandoned(path: string, pid: number, what: 'file' | 'directory'): Promise<boolean> {
  const facts = await lstat(path).catch(() => undefined)
  if (facts === undefined || facts.uid !== process.geteuid?.()) return false
  if (what === 'file' ? !facts.isFile() : !facts.isDirectory()) return false
  if (pid !== process.pid) return !isRunning(pid)
  // In a container, the server before us had the same number.
  return facts.birthtimeMs < Date.now() - process.uptime() * 1_000
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // Of another user.
    return (error as { code?: unknown }).code === 'EPERM'
  }
}
