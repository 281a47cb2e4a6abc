import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CliError, usage } from './failure.ts'
import { Interrupted } from './surroundings.ts'
import { oneLine } from './terminal-text.ts'
import type { Context } from './verb.ts'

type Terminal = Pick<Context, 'stdin' | 'stderr' | 'signal' | 'out'>

export interface AskOptions {
  /** Replaces an empty answer. */
  readonly default?: string | undefined
  /** The hint of the error if there is no terminal: how to do it without a question. */
  readonly otherwise?: string
}

const MAX_BYTES = 1024 * 1024
const SIGINT = 2

/** Asks for one line. Throws `CliError` (usage) if standard input is not a terminal. */
export async function ask(terminal: Terminal, question: string, options: AskOptions = {}): Promise<string> {
  needTerminal(terminal, question, options)
  const { createInterface } = await import('node:readline')
  const { stdin, stderr, signal } = terminal
  signal.throwIfAborted()
  terminal.out.clearProgress()
  const lines = createInterface({ input: stdin, output: stderr, terminal: stdin.setRawMode !== undefined })
  const ahead: string[] = []
  try {
    return await new Promise<string>((done, reject) => {
      lines.on('line', (line) => ahead.push(line))
      lines.question(oneLine(question), { signal }, (answer) =>
        done(answer.trim() || (options.default ?? '')),
      )
      lines.on('SIGINT', () => reject(new Interrupted(SIGINT)))
      lines.on('close', () => reject(noAnswer(options)))
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  } finally {
    // Keep the lines that were typed or pasted ahead for the next question.
    const left = [...ahead, lines.line].join('\n')
    lines.close()
    if (left !== '' && !stdin.readableEnded) stdin.unshift(left)
  }
}

/** Like `ask`, without echo. */
export async function askSecret(
  terminal: Terminal,
  question: string,
  options: Omit<AskOptions, 'default'> = {},
): Promise<string> {
  needTerminal(terminal, question, options)
  const { stdin, stderr, signal } = terminal
  signal.throwIfAborted()
  terminal.out.clearProgress()
  // Before the question, or the terminal would echo a secret that is pasted at once.
  stdin.setRawMode?.(true)
  try {
    stderr.write(oneLine(question))
    return (await readKeys(terminal, options)).trim()
  } finally {
    stdin.setRawMode?.(false)
    stdin.pause()
    if (!signal.aborted) stderr.write('\n')
  }
}

function readKeys({ stdin, signal }: Terminal, options: AskOptions): Promise<string> {
  const { promise, resolve: done, reject } = Promise.withResolvers<string>()
  let typed = ''
  const onKeys = (chunk: Buffer | string) => {
    const keys = [...String(chunk)]
    for (const [at, key] of keys.entries()) {
      if (key === '\r' || key === '\n') {
        stdin.off('data', onKeys).pause()
        const left = keys.slice(at + 1).join('')
        if (left !== '') stdin.unshift(left)
        done(typed)
        return
      }
      if (key === '\u0003') reject(new Interrupted(SIGINT))
      else if (key === '\u0004') reject(noAnswer(options))
      else if (key === '\u007f' || key === '\b') typed = typed.slice(0, -1)
      else if (key === '\u0015') typed = ''
      else if (key >= ' ') typed += key
    }
  }
  const onEnd = () => reject(noAnswer(options))
  const onAbort = () => reject(signal.reason)
  stdin.on('data', onKeys).on('end', onEnd)
  signal.addEventListener('abort', onAbort, { once: true })
  stdin.resume()
  return promise.finally(() => {
    stdin.off('data', onKeys).off('end', onEnd)
    signal.removeEventListener('abort', onAbort)
  })
}

/** Asks a yes-or-no question; the default is no. */
export async function confirm(
  terminal: Terminal,
  question: string,
  options: Omit<AskOptions, 'default'> = {},
): Promise<boolean> {
  return /^y(?:es)?$/i.test(await ask(terminal, `${question} [y/N] `, options))
}

/** Asks, unless `yes` has answered. Throws `CliError` with the sentence `no` for any other answer. */
export async function confirmed(
  terminal: Terminal,
  yes: boolean | undefined,
  question: string,
  { otherwise, no, hint }: { otherwise: string; no: string; hint?: string | undefined },
): Promise<void> {
  if (yes === true || (await confirm(terminal, question, { otherwise }))) return
  throw new CliError('not_confirmed', no, { hint })
}

/** Reads all of standard input. Throws `CliError` for more than `maxBytes`. */
export async function readStdin({ stdin, signal }: Terminal, maxBytes = MAX_BYTES): Promise<string> {
  signal.throwIfAborted()
  const stop = () => stdin.destroy(signal.reason instanceof Error ? signal.reason : undefined)
  signal.addEventListener('abort', stop, { once: true })
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of stdin as AsyncIterable<Buffer | string>) {
      const bytes = Buffer.from(chunk)
      size += bytes.length
      if (size > maxBytes) throw usage(`Standard input holds more than ${maxBytes} bytes.`, 'Send less.')
      chunks.push(bytes)
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Reads a secret from a file (`-`: standard input), without its last newline. Throws `CliError` if it is empty. */
export async function readSecretFile(
  context: Terminal & Pick<Context, 'cwd'>,
  path: string,
): Promise<string> {
  const text = path === '-' ? await readStdin(context) : await readFile(resolve(context.cwd, path), 'utf8')
  const secret = text.replace(/\r?\n$/, '')
  if (secret !== '') return secret
  const where = path === '-' ? 'Standard input' : path
  throw new CliError('usage', `${where} is empty.`, {
    exit: 2,
    hint: 'It must contain the secret, and nothing else.',
  })
}

function needTerminal({ stdin }: Terminal, question: string, { otherwise }: AskOptions): void {
  if (stdin.isTTY === true) return
  const asked = question.replace(/[:?]?(?: \[y\/N\])?\s*$/, '')
  throw usage(`There is no terminal to ask: ${asked}.`, otherwise)
}

const noAnswer = ({ otherwise }: AskOptions) => usage('No answer was given.', otherwise)
