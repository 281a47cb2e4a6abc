import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { median } from './median.ts'

export interface DiskSpeed {
  readonly syncsPerSecond: number
  /** Median time of one 4 KiB write and its `fdatasync`, in ms. */
  readonly syncMs: number
}

const BLOCK_BYTES = 4_096
const FILE_BLOCKS = 1_024

/** Overwrites a file in place, like a reused journal. Blocks for `ms`. */
export function measureDisk(directory: string, ms: number): DiskSpeed {
  const path = join(directory, 'sync-speed')
  const file = openSync(path, 'w', 0o600)
  try {
    writeSync(file, Buffer.alloc(BLOCK_BYTES * FILE_BLOCKS, 1))
    fdatasyncSync(file)
    const block = Buffer.alloc(BLOCK_BYTES, 2)
    const taken: number[] = []
    const began = performance.now()
    let at = began
    for (let n = 0; at - began < ms; n += 1) {
      writeSync(file, block, 0, BLOCK_BYTES, (n % FILE_BLOCKS) * BLOCK_BYTES)
      fdatasyncSync(file)
      const now = performance.now()
      taken.push(now - at)
      at = now
    }
    return { syncsPerSecond: (taken.length * 1_000) / (at - began), syncMs: median(taken) }
  } finally {
    closeSync(file)
    rmSync(path, { force: true })
  }
}
