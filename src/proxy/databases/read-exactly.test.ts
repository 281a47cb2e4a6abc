import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const MODULE = new URL('read-exactly.ts', import.meta.url).href

/** In a process of its own, which ends even where nothing has its turn any more. `pieces`: sizes of what the other end sends. */
async function readIn(pieces: readonly number[], count: number): Promise<string> {
  const program = `
    import { once } from 'node:events'
    import { connect, createServer } from 'node:net'
    import { setTimeout as sleep } from 'node:timers/promises'
    import { readExactly } from ${JSON.stringify(MODULE)}
    const server = createServer(async (socket) => {
      const lengths = []
      try {
        for (;;) lengths.push((await readExactly(socket, ${count}, AbortSignal.timeout(2_000))).length)
      } catch (error) {
        console.log(lengths.join(), error.name)
        process.exit()
      }
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const sender = connect(server.address().port, '127.0.0.1').setNoDelay()
    for (const size of ${JSON.stringify(pieces)}) {
      if (size === 0) sender.end()
      else sender.write(Buffer.alloc(size))
      await sleep(20)
    }`
  const args = ['--input-type=module', '-e', program]
  return (await promisify(execFile)(process.execPath, args, { timeout: 20_000 })).stdout.trim()
}

test.each([
  ['in pieces', [1, 1, 2, 3, 5, 0], 4, '4,4,4 ConnectionLost'],
  [
    'more than a socket keeps',
    [50_000, 50_000, 100_000, 100_000, 0],
    150_000,
    '150000,150000 ConnectionLost',
  ],
  ['with an end in the middle', [4, 3, 0], 4, '4 ConnectionLost'],
  ['in part, and no more', [4, 3], 4, '4 TimeoutError'],
])('what arrives %s', async (_, pieces, count, said) => {
  expect(await readIn(pieces, count)).toBe(said)
})
