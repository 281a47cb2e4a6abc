import { PassThrough, Writable } from 'node:stream'
import { type Host, run } from '../../src/cli/frame/program.ts'
import type { CliEnd } from './support.ts'

/** A question that is waited for, and what is then typed. */
export type Typed = readonly [question: string | RegExp, answer: string]

/** One command line on a terminal: each answer is typed once its question stands there. Throws when one never came. */
export async function runTyping(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  dialogue: readonly Typed[],
): Promise<CliEnd> {
  const left = [...dialogue]
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  let shown = ''
  let unread = ''
  let out = ''
  const sink = (write: (text: string) => void) =>
    Object.assign(
      new Writable({
        write: (chunk, _encoding, done) => {
          write(String(chunk))
          done()
        },
      }),
      { isTTY: true, columns: 120 },
    )
  const stderr = sink((text) => {
    shown += text
    unread += text
    const next = left[0]
    if (next === undefined) return
    const [question, answer] = next
    if (typeof question === 'string' ? !unread.includes(question) : !question.test(unread)) return
    left.shift()
    unread = ''
    // After the program has begun to read.
    setImmediate(() => stdin.write(`${answer}\n`))
  })
  const host: Host = {
    stdin,
    stdout: sink((text) => {
      out += text
    }),
    stderr,
    env: { ...env, NO_COLOR: '1' },
    cwd: env['HOME'] ?? '/',
    home: env['HOME'] ?? '/',
    platform: process.platform,
    now: Date.now,
    watchSignals: () => new AbortController().signal,
  }
  const code = await run(argv, host)
  if (left.length > 0) throw new Error(`never asked: ${String(left[0]?.[0])}\n${shown}`)
  return { code, stdout: out, stderr: shown }
}
