import { open, readFile } from 'node:fs/promises'

const PIECE = 8 * 1024 * 1024

/**
 * How often each text stands in the memory and the environment of these processes. As root, or as the user of the processes where
 * the kernel lets one process look into another.
 */
export async function heldIn(pids: readonly number[], texts: readonly string[]): Promise<number[]> {
  const counts = texts.map(() => 0)
  for (const pid of pids)
    for await (const bytes of memoryOf(pid))
      for (const [index, text] of texts.entries())
        for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1))
          counts[index] = (counts[index] ?? 0) + 1
  return counts
}

/** What the first group of the pattern stands for, wherever it is found in the memory of this process. */
export async function findIn(pid: number, pattern: RegExp): Promise<string[]> {
  const found: string[] = []
  for await (const bytes of memoryOf(pid))
    for (const [, text = ''] of bytes.toString('latin1').matchAll(pattern)) found.push(text)
  return found
}

async function* memoryOf(pid: number): AsyncGenerator<Buffer> {
  yield await readFile(`/proc/${pid}/environ`)
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8')
  const memory = await open(`/proc/${pid}/mem`)
  try {
    for (const [, from = '', to = ''] of maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm))
      yield* piecesOf(memory, Number.parseInt(from, 16), Number.parseInt(to, 16))
  } finally {
    await memory.close()
  }
}

async function* piecesOf(memory: Awaited<ReturnType<typeof open>>, from: number, to: number) {
  const overlap = 4_096
  for (let at = from; at < to; at += PIECE - overlap) {
    const length = Math.min(PIECE, to - at)
    const bytes = Buffer.alloc(length)
    const read = await memory.read(bytes, 0, length, at).catch(() => undefined)
    if (read !== undefined) yield bytes.subarray(0, read.bytesRead)
  }
}
