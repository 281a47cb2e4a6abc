import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pane } from './terminal.ts'

/**
 * A transcript is the script of itself. In blocks ```` ```console PANE ```` lines `$ command` are typed in that pane,
 * and what stands below must be what the pane then shows. `question «answer»`: the answer is typed once the question
 * is there; `«C-c»` alone on a line is that key. ```` ```console PANE goes on ````: the last command is still at work
 * when its last line is there, and the next block of that pane, which then starts without a command, has the rest.
 * A block after `<!-- file: PANE/path -->` is in that directory from the start.
 * Ids, times and the like may differ; one that is typed later is the one that was shown.
 */
export interface Block {
  readonly pane: string
  readonly goesOn: boolean
  readonly entries: Entry[]
  /** Where its text begins and ends in the file. */
  readonly from: number
  readonly to: number
}

interface Entry {
  /** Undefined: the rest of what an earlier block began. */
  readonly command: string | undefined
  readonly lines: string[]
}

export interface ReplayWish {
  readonly pane: (name: string) => Pane
  /** What stands in the file, and what it is here: ports, directories. */
  readonly replace: readonly (readonly [string, string])[]
  /** What the paths of files are relative to. */
  readonly directory: string
}

const BLOCK = /^```console (\w+)( goes on)?\n([\s\S]*?)^```$/gm
const FILE = /^<!-- file: (\S+) -->\n+```\w+\n([\s\S]*?)^```$/gm
const KEY = /^«(C-.)»$/

export function readBlocks(text: string): Block[] {
  return [...text.matchAll(BLOCK)].map((match) => {
    const [whole, pane = '', goesOn, body = ''] = match
    const from = match.index + whole.indexOf('\n') + 1
    return { pane, goesOn: goesOn !== undefined, entries: readEntries(body), from, to: from + body.length }
  })
}

function readEntries(body: string): Entry[] {
  const entries: Entry[] = []
  for (const line of body.replace(/\n$/, '').split('\n')) {
    if (line.startsWith('$ ')) entries.push({ command: line.slice(2), lines: [] })
    else if (entries.length === 0) entries.push({ command: undefined, lines: [line] })
    else entries.at(-1)?.lines.push(line)
  }
  return entries
}

/** Types it all again. Throws where something else is shown; with `update` that is written into the file. */
export async function replay(path: string, wish: ReplayWish, update = false): Promise<void> {
  const text = await readFile(path, 'utf8')
  const blocks = readBlocks(text)
  if (blocks.length === 0) throw new Error(`${path}: nothing in it is typed`)
  for (const [, name = '', body = ''] of text.matchAll(FILE))
    await writeFile(join(wish.directory, name), body)
  const known = new Map<string, string>()
  const shown = new Map<string, string[]>()
  const written: string[] = []
  for (const block of blocks) {
    const lines: string[] = []
    for (const [index, entry] of block.entries.entries()) {
      const isOpen = block.goesOn && index === block.entries.length - 1
      const actual = await play(wish, block.pane, entry, { isOpen, known, shown })
      const typed = entry.command === undefined ? [] : [`$ ${translated(entry.command, known)}`]
      lines.push(...typed, ...actual)
      if (!update) compare(`${path}: ${entry.command ?? `the rest in ${block.pane}`}`, entry.lines, actual)
      learn(known, entry.lines, actual)
    }
    written.push(`${lines.join('\n')}\n`)
  }
  if (!update) return
  const parts = blocks.map(({ from }, index) => text.slice(blocks[index - 1]?.to ?? 0, from) + written[index])
  await writeFile(path, parts.join('') + text.slice(blocks.at(-1)?.to ?? 0))
}

interface State {
  readonly isOpen: boolean
  readonly known: Map<string, string>
  /** Of each pane: what its open command had shown when the last block of it ended. */
  readonly shown: Map<string, string[]>
}

/** What the pane shows for this entry, in the words of the file. */
async function play(wish: ReplayWish, name: string, entry: Entry, state: State): Promise<string[]> {
  const pane = wish.pane(name)
  const here = (text: string) => wish.replace.reduce((all, [from, to]) => swapped(all, from, to), text)
  const there = (text: string) => wish.replace.reduce((all, [to, from]) => swapped(all, from, to), text)
  if (entry.command !== undefined) {
    await pane.command(here(translated(entry.command, state.known)))
    state.shown.delete(name)
  }
  const answered: { question: string; answer: string }[] = []
  for (const [index, line] of entry.lines.entries()) {
    const key = KEY.exec(line)?.[1]
    if (key !== undefined) {
      const before = entry.lines[index - 1]
      if (before !== undefined)
        await pane.output((lines) => masked(there(lines.at(-1) ?? '')) === masked(before))
      await pane.key(key)
      continue
    }
    const [, question, answer] = /^(.*)«(.*)»$/.exec(line) ?? []
    if (question === undefined || answer === undefined) continue
    await pane.output((lines) => masked(there(lines.at(-1) ?? '')) === masked(question))
    await pane.answer(here(answer))
    answered.push({ question: question.trimEnd(), answer })
  }
  const wanted = masked(entry.lines.at(-1) ?? '')
  const output = await pane.output((lines, isOver) =>
    state.isOpen ? masked(there(lines.at(-1) ?? '')) === wanted || isOver : isOver,
  )
  const before = entry.command === undefined ? (state.shown.get(name) ?? []) : []
  state.shown.set(name, output)
  const lines = output.slice(sameStart(before, output)).map(there)
  const marked = withAnswers(lines, answered)
  for (const [index, line] of entry.lines.entries()) if (KEY.test(line)) marked.splice(index, 0, line)
  return marked
}

/** Not in the midst of a word: a port may be a part of an id. */
function swapped(text: string, from: string, to: string): string {
  const form = from.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const whole = `${/^\w/.test(from) ? '(?<!\\w)' : ''}${form}${/\w$/.test(from) ? '(?!\\w)' : ''}`
  return text.replace(new RegExp(whole, 'g'), () => to)
}

function sameStart(before: readonly string[], after: readonly string[]): number {
  const differs = before.findIndex((line, index) => masked(line) !== masked(after[index] ?? ''))
  return differs === -1 ? before.length : differs
}

/** Marks what was typed; an answer that is not echoed is marked all the same. */
function withAnswers(lines: readonly string[], answered: { question: string; answer: string }[]): string[] {
  const left = [...answered]
  return lines.map((line) => {
    const next = left[0]
    if (next === undefined || !line.startsWith(next.question)) return line
    const rest = line.slice(next.question.length).trim()
    if (rest !== '' && rest !== next.answer) return line
    left.shift()
    return `${next.question} «${next.answer}»`
  })
}

/** What differs from one time to the next. An id that was shown is typed later. */
const CHANGING: readonly RegExp[] = [
  /\b(?:enr|cred|ag|agent|req|aud)_[0-9a-z]{26}\b/g,
  /\bmf_[0-9a-z]{10,}(?:_[0-9a-z]+)?\b/g,
  /\bck[rs]_[0-9a-f]{48,64}\b/g,
  /(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/g,
  /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?\b/g,
  /(?<!\d)\d\d:\d\d:\d\d(?:\.\d{3})?\b/g,
  /\b\d+(?:\.\d+)? (?:ms|s|min)\b/g,
]

function masked(line: string): string {
  const same = CHANGING.reduce((text, form, index) => text.replace(form, `‹${index}›`), line)
  return same
    .replace(/[ \t]+/g, ' ')
    .replace(/[─-]{3,}/g, '---')
    .trimEnd()
}

function compare(what: string, wanted: readonly string[], actual: readonly string[]): void {
  const [one, other] = [wanted, actual].map((lines) => lines.map(masked).join('\n').trimEnd())
  if (one === other) return
  throw new Error(
    `${what}\nshows:\n${actual.join('\n')}\nand the transcript says:\n${wanted.join('\n')}\n` +
      'If that is right: UPDATE_TRANSCRIPTS=1 npx vitest run test/docs/transcripts.test.ts',
  )
}

/** The nth id of a form in the file is the nth of it that was shown. */
function learn(known: Map<string, string>, wanted: readonly string[], actual: readonly string[]): void {
  for (const form of CHANGING) {
    const found = wanted.join('\n').match(form) ?? []
    const seen = actual.join('\n').match(form) ?? []
    for (const [index, text] of found.entries()) {
      const now = seen[index]
      if (now !== undefined && !known.has(text)) known.set(text, now)
    }
  }
}

function translated(command: string, known: ReadonlyMap<string, string>): string {
  return [...known].reduce((text, [from, to]) => text.replaceAll(from, to), command)
}
