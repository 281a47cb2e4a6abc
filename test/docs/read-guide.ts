/**
 * The parts of a documentation page that a test runs. Fenced blocks run in the order of the page, in one bash with
 * `set -eo pipefail`, so that variables and `cd` last:
 *   ```sh          The whole block runs and must succeed.
 *   ```console     Lines `$ command` run (a `\` at the end continues them). The lines below each command are its
 *                  output, both streams, and are compared: `…` stands for anything within a line, a line `…` for any
 *                  number of lines. Ids, times and secrets may differ.
 * A comment before a block changes that:
 *   <!-- file: path -->     The block, in any language, is written to that file.
 *   <!-- not run: why -->   The block is skipped.
 *   <!-- cron -->           The commands of lines for /etc/cron.d run and must succeed.
 *   <!-- background -->     The one command of the block keeps running; the test waits for the output shown.
 *   <!-- run                The lines up to a line `-->` run without being shown.
 */
export type GuideStep =
  | { readonly kind: 'file'; readonly line: number; readonly path: string; readonly text: string }
  | RunStep

export interface RunStep {
  readonly kind: 'run'
  readonly line: number
  readonly command: string
  readonly isBackground?: boolean
  /** Undefined: anything may be printed. */
  readonly output?: Shown
}

/** Output as the page shows it, and where it is in the page. */
export interface Shown {
  readonly text: string
  readonly from: number
  readonly to: number
  readonly indent: string
}

const FENCE = /^( *)(`{3,})\s*(\S*)[^\n]*\n([\s\S]*?)^\1\2\s*$/gm
/** Five times and an account. */
const SCHEDULE = /^(?:\S+ +){6}/gm
const HIDDEN = /^<!-- run\n([\s\S]*?)^-->$/gm

/** The steps of a page, in order. */
export function readGuide(text: string): GuideStep[] {
  const found: { at: number; steps: GuideStep[] }[] = []
  for (const match of text.matchAll(HIDDEN)) {
    const line = lineAt(text, match.index)
    found.push({ at: match.index, steps: [{ kind: 'run', line, command: match[1] ?? '' }] })
  }
  for (const match of text.matchAll(FENCE))
    found.push({ at: match.index, steps: stepsOf(readBlock(text, match)) })
  return found.sort((one, other) => one.at - other.at).flatMap(({ steps }) => steps)
}

const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length

interface Block {
  readonly language: string
  readonly marker: string | undefined
  readonly indent: string
  readonly body: string
  readonly line: number
  /** Where the body begins in the page. */
  readonly from: number
}

function readBlock(text: string, match: RegExpExecArray): Block {
  const [whole, indent = '', , language = '', body = ''] = match
  return {
    language,
    marker: /<!-- ([^>]*?) -->\s*$/.exec(text.slice(0, match.index))?.[1],
    indent,
    body,
    line: lineAt(text, match.index),
    from: match.index + whole.indexOf('\n') + 1,
  }
}

function stepsOf(block: Block): GuideStep[] {
  const { language, marker = '', indent, body, line } = block
  const [, verb, about = ''] = /^(file|not run): (.+)$/.exec(marker) ?? []
  const plain = indent === '' ? body : body.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
  if (verb === 'file') return [{ kind: 'file', line, path: about, text: plain }]
  if (verb === 'not run') return []
  if (language === 'sh' || language === 'bash') return [{ kind: 'run', line, command: plain }]
  if (marker === 'cron') return [{ kind: 'run', line, command: plain.replace(SCHEDULE, '') }]
  if (language !== 'console') return []
  const steps = readConsole(block)
  return marker === 'background' ? steps.map((step) => ({ ...step, isBackground: true })) : steps
}

function readConsole({ body, from, indent, line: first }: Block): RunStep[] {
  const steps: { line: number; command: string; text: string; from: number; to: number }[] = []
  let isContinued = false
  let at = from
  for (const [index, raw] of body.replace(/\n$/, '').split('\n').entries()) {
    const text = raw.startsWith(indent) ? raw.slice(indent.length) : raw
    const line = first + 1 + index
    const last = steps.at(-1)
    at += raw.length + 1
    if (isContinued && last !== undefined) {
      last.command += `\n${text.replace(/^> /, '')}`
      last.from = last.to = at
    } else if (text.startsWith('$ ')) steps.push({ line, command: text.slice(2), text: '', from: at, to: at })
    else if (last === undefined) throw new Error(`line ${line}: output before any "$ command"`)
    else {
      last.text += `${text}\n`
      last.to = at
    }
    isContinued = (isContinued || text.startsWith('$ ')) && text.endsWith('\\')
  }
  return steps.map(({ line, command, text, from, to }) => ({
    kind: 'run',
    line,
    command,
    output: { text, from, to, indent },
  }))
}
