import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Below those that a system gives to connections, and to listeners that name none: what runs beside this test is given no such port
 * between its choice and its use.
 */
const [LOWEST, HIGHEST] = [15_000, 32_000]

const given = new Set<number>()

/** A port of 127.0.0.1 on which nothing listens, and never the same twice. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST)
    if (given.has(port) || !(await isFree(port))) continue
    given.add(port)
    return port
  }
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
