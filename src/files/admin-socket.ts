import { closeSync, openSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** `sun_path` of macOS has room for 103 bytes and a NUL; that of Linux for four more. */
const MAX_PATH_BYTES = 103

/** The socket on which the server of this data directory listens for its administrators. */
export const adminSocketOf = (dataDir: string) => join(dataDir, 'admin.sock')

/**
 * Calls `use` with a path to the socket that fits into a socket address, and lets go of the directory when that
 * settles. Throws `SocketPathTooLong`, or the error of opening the directory.
 */
export async function withSocketPath<T>(path: string, use: (path: string) => Promise<T>): Promise<T> {
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return use(path)
  if (process.platform !== 'linux') throw new SocketPathTooLong()
  const directory = openSync(dirname(path), 'r')
  try {
    return await use(`/proc/self/fd/${directory}/${basename(path)}`)
  } finally {
    closeSync(directory)
  }
}

export class SocketPathTooLong extends Error {
  override readonly name = 'SocketPathTooLong'
  readonly code = 'ENAMETOOLONG'
}
