import type { Context } from './verb.ts'

/** Less is no wait. */
const EVERY_MS = 1_000

/** Shows on a terminal what one waits for, and how long already, from the first second on. */
export async function whileWaiting<T>(
  { out, now }: Pick<Context, 'out' | 'now'>,
  what: string,
  work: Promise<T>,
): Promise<T> {
  const since = now()
  const timer = setInterval(() => out.progress(`${what}: ${Math.round((now() - since) / 1_000)} s`), EVERY_MS)
  try {
    return await work
  } finally {
    clearInterval(timer)
    out.clearProgress()
  }
}
