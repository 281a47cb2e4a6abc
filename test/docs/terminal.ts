import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { poll } from '../support/server-process.ts'

const run = promisify(execFile)
const WITHIN_MS = 60_000
const EVERY_MS = 30

/** A shell in a pane of a real tmux, driven as by a person. */
export interface Pane {
  /** Types a command line, once the shell is ready for one. */
  command(line: string): Promise<void>
  /** Types an answer to a question, or nothing but the return key. */
  answer(text: string): Promise<void>
  /** A key by the name that tmux has for it, such as `C-c`. */
  key(name: string): Promise<void>
  /** What stands below the last command, once `enough` says so of it; `isOver`: the shell is ready for another. */
  output(enough: (lines: readonly string[], isOver: boolean) => boolean): Promise<string[]>
}

export interface Terminal {
  open(env: Readonly<Record<string, string>>, cwd: string): Promise<Pane>
  close(): Promise<void>
}

/** One window; each pane that is opened is a part of it. */
export async function startTerminal(): Promise<Terminal> {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-tmux-'))
  // What tmux runs goes through this shell, whatever the account has.
  const env = { PATH: process.env['PATH'], SHELL: '/bin/sh', LANG: 'C.UTF-8' }
  const tmux = async (...argv: string[]) =>
    (await run('tmux', ['-u', '-S', join(directory, 'socket'), '-f', '/dev/null', ...argv], { env })).stdout
  let isStarted = false
  return {
    open: async (env, cwd) => {
      const shell = shellOf(env)
      const size = ['-x', '100', '-y', '600']
      const id = isStarted
        ? await tmux('split-window', '-d', '-P', '-F', '#{pane_id}', '-c', cwd, shell)
        : await tmux('new-session', '-d', '-P', '-F', '#{pane_id}', ...size, '-c', cwd, shell)
      isStarted = true
      await tmux('select-layout', 'even-vertical')
      return paneOf(tmux, id.trim())
    },
    close: async () => {
      if (isStarted) await tmux('kill-server')
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** The prompt counts itself in the title of the pane: so it is known when a command has ended. */
function shellOf(env: Readonly<Record<string, string>>): string {
  const all = {
    ...env,
    HISTFILE: '',
    PS1: '$ ',
    PROMPT_COMMAND: 'printf \'\\033]2;prompt-%s\\007\' "$((prompts += 1))"',
  }
  const words = Object.entries(all).map(([name, value]) => quoted(`${name}=${value}`))
  return `exec env -i TERM="$TERM" ${words.join(' ')} bash --noprofile --norc -i`
}

function paneOf(tmux: (...argv: string[]) => Promise<string>, id: string): Pane {
  let typed = 0
  let last = ''
  const lines = async () => {
    const text = await tmux('capture-pane', '-p', '-J', '-S', '-', '-t', id)
    return text
      .trimEnd()
      .split('\n')
      .map((line) => line.trimEnd())
  }
  const isReady = async () => {
    const title = (await tmux('display-message', '-p', '-t', id, '#{pane_title}')).trim()
    return title === `prompt-${typed + 1}` && (await lines()).at(-1) === '$'
  }
  const type = async (text: string) => {
    if (text !== '') await tmux('send-keys', '-t', id, '-l', '--', text)
    await tmux('send-keys', '-t', id, 'Enter')
  }
  const below = async () => {
    const all = await lines()
    const from = all.lastIndexOf(`$ ${last}`.trimEnd())
    if (from === -1) return undefined
    const isOver = await isReady()
    return { shown: isOver ? all.slice(from + 1, -1) : all.slice(from + 1), isOver }
  }
  return {
    command: async (line) => {
      await poll(`a prompt, for: ${line}`, isReady, { withinMs: WITHIN_MS, everyMs: EVERY_MS })
      last = line
      await type(line)
      typed += 1
    },
    answer: type,
    key: async (name) => {
      await tmux('send-keys', '-t', id, name)
    },
    output: async (enough) => {
      let seen: string[] = []
      const look = async () => {
        const found = await below()
        seen = found?.shown ?? (await lines())
        // Once more when it is over: the screen is read before the title.
        if (found === undefined || !enough(found.shown, found.isOver)) return undefined
        return found.isOver ? (await below())?.shown : found.shown
      }
      const what = () => `the end of: ${last}\n${seen.join('\n')}`
      return poll(what, look, { withinMs: WITHIN_MS, everyMs: EVERY_MS })
    },
  }
}
