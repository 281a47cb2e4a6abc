import { stat } from 'node:fs/promises'

/**
 * Root works in a data directory with the rights of its owner, the user of the server. What it makes belongs to them, and
 * a link that they may have put there leads root nowhere.
 */
export async function withRightsOf<T>(directory: string, work: () => Promise<T>): Promise<T> {
  const { uid, gid } = await stat(directory)
  if (process.geteuid?.() !== 0 || uid === 0) return work()
  const group = process.getegid?.() ?? 0
  process.setegid?.(gid)
  process.seteuid?.(uid)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(group)
  }
}
