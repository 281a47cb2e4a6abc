import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * The parts of a guide that do something. Fenced blocks, in their order, run in one bash with `set -eo pipefail`,
 * so that variables and `cd` last:
 *   ```sh          the whole block is run, and must succeed
 *   ```console     lines `$ command` are run (continued by a `\` at their end); what follows each is its output,
 *                  both streams, and compared: `…` stands for anything within a line, a line `…` for any lines
 * A comment changes that:
 *   <!-- file: path -->      before a block, of whatever language: it is written to that file, from where the shell is
 *   <!-- not run: why -->    before a block: it is left out
 *   <!-- run                 and lines up to a line `-->`: they are run without being shown
 */
export type GuideStep =
  | { readonly kind: 'file'; readonly line: number; readonly path: string; readonly text: string }
  | { readonly kind: 'run'; readonly line: number; readonly command: string; readonly output?: string }

export interface GuideWish {
  readonly env: Readonly<Record<string, string>>
  /** Where bash starts. */
  readonly cwd: string
  /** Texts of the guide and what stands for them here: `[['https://mayfly.example.com', url]]`. Longest first. */
  readonly replace?: readonly (readonly [string, string])[]
  readonly timeoutMs?: number
}

export interface StepResult {
  readonly line: number
  readonly command: string
  readonly output: string
}

const FENCE = /^( *)(`{3,})\s*(\S*)[^\n]*\n([\s\S]*?)^\1\2\s*$/gm
const HIDDEN = /^<!-- run\n([\s\S]*?)^-->$/gm

/** What a guide does, in order. Throws for a marker that it does not know. */
export function readGuide(text: string): GuideStep[] {
  const found: { at: number; steps: GuideStep[] }[] = []
  for (const match of text.matchAll(HIDDEN)) {
    const line = lineAt(text, match.index)
    found.push({ at: match.index, steps: [{ kind: 'run', line, command: match[1] ?? '' }] })
  }
  for (const match of text.matchAll(FENCE)) {
    const [, indent = '', , language = '', body = ''] = match
    const marker = /<!-- ([^>]*?) -->\s*$/.exec(text.slice(0, match.index))?.[1]
    const plain = indent === '' ? body : body.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
    const steps = stepsOf(language, plain, marker, lineAt(text, match.index))
    found.push({ at: match.index, steps })
  }
  return found.sort((one, other) => one.at - other.at).flatMap(({ steps }) => steps)
}

const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length

function stepsOf(language: string, body: string, marker: string | undefined, line: number): GuideStep[] {
  const [, verb, about] = /^(file|not run): (.+)$/.exec(marker ?? '') ?? []
  if (verb === 'file') return [{ kind: 'file', line, path: about ?? '', text: body }]
  if (verb === 'not run') return []
  if (language === 'sh' || language === 'bash') return [{ kind: 'run', line, command: body }]
  return language === 'console' ? readConsole(body, line) : []
}

function readConsole(body: string, first: number): GuideStep[] {
  const steps: { kind: 'run'; line: number; command: string; output: string }[] = []
  let isContinued = false
  for (const [index, text] of body.replace(/\n$/, '').split('\n').entries()) {
    const last = steps.at(-1)
    if (isContinued && last !== undefined) last.command += `\n${text.replace(/^> /, '')}`
    else if (text.startsWith('$ '))
      steps.push({ kind: 'run', line: first + 1 + index, command: text.slice(2), output: '' })
    else if (last === undefined) throw new Error(`line ${first + 1 + index}: output before any "$ command"`)
    else last.output += `${text}\n`
    isContinued = (isContinued || text.startsWith('$ ')) && text.endsWith('\\')
  }
  return steps
}

/** Runs what a guide says. Throws at the first step that fails or says something else, with its line in the guide. */
export async function runGuide(path: string, wish: GuideWish): Promise<StepResult[]> {
  const steps = readGuide(replaced(await readFile(resolve(ROOT, path), 'utf8'), wish.replace))
  const runs = steps.filter((step) => step.kind === 'run')
  if (runs.length === 0) throw new Error(`${path}: nothing in it is run`)
  const marker = `--- ${randomUUID()} `
  const said = await runScript(scriptOf(steps, marker), wish)
  const parts = said.split(marker).slice(1)
  const end = parts.pop() ?? ''
  const results = parts.map((part, index): StepResult => {
    const { line = 0, command = '' } = runs[index] ?? {}
    return { line, command, output: part.replace(/^.*\n/, '') }
  })
  for (const [index, { line, command, output }] of results.entries()) {
    const where = `${path}:${line}: ${command.trim()}`
    const wanted = runs[index]?.output
    const isLast = index === results.length - 1
    if (isLast && end.trim() !== 'end 0') throw new Error(`${where}\n${end.trim()}, after:\n${output}`)
    if (wanted !== undefined && !isAsSaid(wanted, output))
      throw new Error(`${where}\nsays:\n${output}\nand the guide says:\n${wanted}`)
  }
  if (results.length !== runs.length) throw new Error(`${path}: it ended early:\n${said}`)
  return results
}

/** One script of all steps, each with nothing on standard input, in the shell itself: `cd` and variables last. */
function scriptOf(steps: readonly GuideStep[], marker: string): string {
  const parts = steps.map((step) =>
    step.kind === 'run'
      ? `printf '%sstep\\n' '${marker}'\n{ :\n${step.command}\n} </dev/null\n`
      : `mkdir -p ${quoted(dirname(step.path))}\nprintf %s ${quoted(step.text)} > ${quoted(step.path)}\n`,
  )
  return `set -eo pipefail\nexec 2>&1\ntrap 'printf "%send %s\\n" "${marker}" "$?"' EXIT\n${parts.join('')}`
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

function replaced(text: string, pairs: GuideWish['replace'] = []): string {
  return pairs.reduce((whole, [from, to]) => whole.replaceAll(from, to), text)
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** `…` stands for anything within a line, a line of it alone for any number of lines; blanks at ends do not count. */
export function isAsSaid(said: string, actual: string): boolean {
  const pattern = said
    .trimEnd()
    .split('\n')
    .map((line) =>
      line.trim() === '…'
        ? '(?:[^\\n]*\\n)*?'
        : `${line.trimEnd().split('…').map(escaped).join('[^\\n]*?')}[ \\t]*\\n`,
    )
    .join('')
  return new RegExp(`^${pattern}$`).test(`${actual.trimEnd()}\n`)
}

async function runScript(script: string, { env, cwd, timeoutMs = 120_000 }: GuideWish): Promise<string> {
  const child = spawn('bash', ['--noprofile', '--norc', '-c', script], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
    })
  const endAll = () => {
    try {
      // With all that runs in the background of it.
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // Nothing of it is left.
    }
  }
  const timer = setTimeout(endAll, timeoutMs)
  const closed = once(child, 'close')
  try {
    // Not `close` alone: what was left in the background may hold the pipe.
    await once(child, 'exit')
    endAll()
    await closed
    return said
  } finally {
    clearTimeout(timer)
  }
}

/** Puts a `mayfly` of this checkout into `directory`, which is to stand first in PATH. */
export async function installMayfly(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const path = join(directory, 'mayfly')
  await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`)
  await chmod(path, 0o755)
}
