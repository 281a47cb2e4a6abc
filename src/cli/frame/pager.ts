import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Writable } from 'node:stream'
import { createOutput } from './output.ts'
import type { TerminalOutput } from './surroundings.ts'
import type { Context } from './verb.ts'

/** For `less`, as git sets it: leave at the end of a short text, show colours, keep the text on the screen. */
const LESS = 'FRX'

/**
 * A context whose standard output is kept until it is longer than the terminal, and then goes to the program, which runs in
 * a shell. What follows after the user has left it is dropped. `close` writes what was kept, and waits for the program.
 */
export function openPager(context: Context, program: string) {
  const { stdout, stderr, env, signal } = context
  const rows = stdout.rows || 24
  let kept = ''
  let pager: ReturnType<typeof start> | undefined
  const stream: TerminalOutput = Object.assign(
    new Writable({
      decodeStrings: false,
      write: (chunk, _encoding, done) => {
        kept += String(chunk)
        if (pager === undefined && kept.split('\n').length <= rows) return done()
        pager ??= start(context, program)
        const text = kept
        kept = ''
        // A pager that has gone is no error: the user has seen enough.
        pager.input.write(text, () => done())
      },
    }),
    { isTTY: true, columns: stdout.columns ?? 80, rows },
  )
  const out = createOutput({ stdout: stream, stderr, env }, false)
  return {
    context: { ...context, stdout: stream, out, signal },
    close: async () => {
      if (pager === undefined) {
        if (kept !== '') await new Promise((resolve) => stdout.write(kept, resolve))
        return
      }
      pager.input.end()
      await pager.ended
    },
  }
}

function start({ env, cwd, signal }: Context, program: string) {
  const child = spawn(program, {
    shell: true,
    cwd,
    env: { LESS, ...env },
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  child.stdin.on('error', () => {})
  const end = () => child.kill()
  signal.addEventListener('abort', end, { once: true })
  const ended = once(child, 'close').finally(() => signal.removeEventListener('abort', end))
  return { input: child.stdin, ended: ended.catch(() => undefined) }
}
