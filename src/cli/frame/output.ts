import type { Surroundings, TerminalOutput } from './surroundings.ts'
import { jsonText, oneLine, painted, plain } from './terminal-text.ts'

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow'
const CODES: Readonly<Record<Colour, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 }

/** Results go to standard output, everything else to standard error. */
export interface Output {
  /** True with `--json`. */
  readonly isJson: boolean
  /**
   * Writes the text, with a newline, to standard output: unchanged for a program, safe for a terminal. Rejects if the
   * write fails.
   */
  result(text: string): Promise<void>
  /** Writes a value as JSON, even without `--json`; `line` puts it on one line, for streams. */
  json(value: unknown, layout?: 'line'): Promise<void>
  /** Writes the value with `--json`, the text without. Empty text writes nothing. */
  show(value: unknown, human: () => string): Promise<void>
  /** Reports a completed action: the value with `--json`, otherwise a line on standard error. */
  report(value: unknown, text: string): Promise<void>
  /** Writes a line to standard error, even with `--json`. */
  note(text: string, colour?: Colour): void
  /** Writes a line that the next one replaces; nothing if standard error is not a terminal. */
  progress(text: string): void
  /** Clears the progress line. */
  clearProgress(): void
  /** Adds colour if standard output is a terminal and NO_COLOR is not set. */
  paint(colour: Colour, text: string): string
}

export function createOutput(io: Pick<Surroundings, 'stdout' | 'stderr' | 'env'>, isJson: boolean): Output {
  const noColour = (io.env['NO_COLOR'] ?? '') !== '' || io.env['TERM'] === 'dumb'
  let hasProgress = false
  const clearProgress = () => {
    if (hasProgress) io.stderr.write('\r\x1b[2K')
    hasProgress = false
  }
  const inColour = (colour: Colour, text: string, { isTTY }: TerminalOutput) =>
    noColour || isTTY !== true ? text : `\x1b[${CODES[colour]}m${text}\x1b[0m`
  const result = (text: string) => {
    clearProgress()
    return write(io.stdout, `${io.stdout.isTTY === true ? painted(text) : text}\n`)
  }
  const json = (value: unknown, layout?: 'line') => result(jsonText(value, layout === 'line' ? undefined : 2))
  const note = (text: string, colour?: Colour) => {
    clearProgress()
    const safe = plain(text)
    io.stderr.write(`${colour === undefined ? safe : inColour(colour, safe, io.stderr)}\n`)
  }
  return {
    isJson,
    result,
    json,
    report: async (value, text) => (isJson ? json(value) : note(text)),
    show: async (value, human) => {
      if (isJson) return json(value)
      const text = painted(human())
      if (text !== '') await result(text)
    },
    note,
    progress: (text) => {
      if (io.stderr.isTTY !== true || isJson) return
      // Some terminals say that they have none.
      const line = oneLine(text).slice(0, (io.stderr.columns || 80) - 1)
      io.stderr.write(`\r\x1b[2K${line}`)
      hasProgress = true
    },
    clearProgress,
    paint: (colour, text) => inColour(colour, text, io.stdout),
  }
}

function write(stream: TerminalOutput, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error == null ? resolve() : reject(error)))
  })
}

/** What a column holds: text, in a colour where the terminal has it. */
export type Cell = string | { readonly text: string; readonly colour: Colour }

/** Aligned columns, two spaces apart, under a heading. `paint` colours them; without it they stay as they are. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: Output['paint'] = (_, text) => text,
): string {
  const top = heading.map((text) => ({ text, colour: 'bold' }) as const)
  const cells = [top, ...rows].map((row) =>
    row.map((cell) => {
      const { text, colour } = typeof cell === 'string' ? { text: cell, colour: undefined } : cell
      return { text: oneLine(text), colour }
    }),
  )
  const widths = heading.map((_, column) => Math.max(...cells.map((row) => row[column]?.text.length ?? 0)))
  return cells
    .map((row) =>
      row
        .map(({ text, colour }, column) => {
          const gap = ' '.repeat(Math.max(0, (widths[column] ?? 0) - text.length))
          return `${colour === undefined || text === '' ? text : paint(colour, text)}${gap}`
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Lines of `name: value`, aligned. Leaves out undefined values. */
export function listing(facts: Readonly<Record<string, string | undefined>>): string {
  const lines = Object.entries(facts)
    .filter((fact): fact is [string, string] => fact[1] !== undefined)
    .map(([name, value]) => [oneLine(name), oneLine(value)] as const)
  const width = Math.max(...lines.map(([name]) => name.length))
  return lines.map(([name, value]) => `${`${name}:`.padEnd(width + 1)} ${value}`).join('\n')
}
