import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { shellQuote } from '../../src/domain/formats/shell-word.ts'

export interface StepEnd {
  /** Both streams. */
  readonly output: string
  /** Exit code of the shell when the step ended it, or what happened instead. */
  readonly end?: string
}

/** One bash with `set -eo pipefail` that is fed step by step. Every step has an empty standard input. */
export interface GuideShell {
  run(command: string): Promise<StepEnd>
  /** Starts it in the background and waits until `isEnough` of what it has printed. */
  start(command: string, isEnough: (printed: string) => boolean): Promise<StepEnd>
  /** Kills every process that still runs. */
  close(): Promise<void>
}

interface ShellOptions {
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly timeoutMs: number
}

const START_WITHIN_MS = 60_000

export function startShell({ env, cwd, timeoutMs }: ShellOptions): GuideShell {
  const marker = `--- ${randomUUID()} `
  const child = spawn('bash', ['--noprofile', '--norc'], {
    cwd,
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk
    child.emit('printed')
  })
  child.stdin.on('error', () => {})
  let isOver = false
  const closed = once(child, 'close')
  const killAll = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // Nothing of it is left.
    }
  }
  // Not `close`: a process in the background may hold the pipe.
  child.once('exit', () => {
    isOver = true
    killAll()
    void closed.then(() => child.emit('printed'))
  })
  const timer = setTimeout(killAll, timeoutMs)
  child.stdin.write(`set -eo pipefail\nexec 2>&1\ntrap 'printf "%send %s\\n" "${marker}" "$?"' EXIT\n`)

  /** The output up to the next marker, which is taken away. */
  const takeStep = (): StepEnd | undefined => {
    const [output = '', rest] = printed.split(marker)
    if (rest === undefined) return isOver ? { output, end: 'killed' } : undefined
    const [, kind, code] = /^(\w+) ?(\d*)\n/.exec(rest) ?? []
    if (kind === undefined) return undefined
    printed = printed.slice(output.length + marker.length + rest.indexOf('\n') + 1)
    return kind === 'end' ? { output, end: code ?? '' } : { output }
  }
  const run = async (command: string): Promise<StepEnd> => {
    child.stdin.write(`eval ${shellQuote(command)} </dev/null\nprintf '%sstep\\n' '${marker}'\n`)
    for (;;) {
      const step = takeStep()
      if (step !== undefined) return step
      await once(child, 'printed')
    }
  }
  const start: GuideShell['start'] = async (command, isEnough) => {
    const directory = await mkdtemp(join(tmpdir(), 'mayfly-background-'))
    const file = join(directory, 'output')
    await run(`( eval ${shellQuote(command)} ) > ${shellQuote(file)} 2>&1 &`)
    const until = Date.now() + START_WITHIN_MS
    try {
      for (;;) {
        const output = await readFile(file, 'utf8').catch(() => '')
        if (isEnough(output)) return { output }
        if (Date.now() > until || isOver) return { output, end: 'background' }
        await sleep(20)
      }
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }
  return {
    run,
    start,
    close: async () => {
      clearTimeout(timer)
      killAll()
      await closed
    },
  }
}
