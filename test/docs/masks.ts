/** What differs from one run to the next. A page may shorten an id: `enr_…`. */
const CHANGING: readonly RegExp[] = [
  /\b(?:enr|cred|ag|agent|req|aud|run)_(?:[0-9a-z]{26}\b|…)/g,
  /\bmf_(?:[0-9a-z]{10,}(?:_[0-9a-z]+)?\b|…)/g,
  /\bck[rs]_(?:[0-9a-f]{48,64}\b|…)/g,
  /\b(?:op|ses|pk)_(?:[0-9a-z]{26}\b|…)/g,
  // What a person types to allow a command.
  /\b[2-9BCDFGHJKMNPQRSTVWXZ]{4}-[2-9BCDFGHJKMNPQRSTVWXZ]{4}\b/g,
  /\bmf[slk]_(?:[0-9a-f]{64}\b|…)/g,
  /\beyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){0,2}/g,
  /(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/g,
  /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?/g,
  /(?<!\d)\d\d:\d\d:\d\d(?:\.\d{3})?\b/g,
  /\b\d+(?:\.\d+)? (?:ms|s|min)\b/g,
  // Seconds since 1970.
  /\b1\d{9}\b/g,
]

function masked(line: string): string {
  return CHANGING.reduce((text, form, index) => text.replace(form, `‹${index}›`), line)
    .replace(/[ \t]+/g, ' ')
    .replace(/[─-]{3,}/g, '---')
    .trimEnd()
}

const STAMP = /^\d{4}-\d\d-\d\dT\S+/

/** Entries of one commit have one time, and stand in the order of their random ids: here in that of the alphabet. */
function settled(lines: readonly string[]): string[] {
  const ofOneTime: string[][] = []
  let before: string | undefined
  for (const line of lines) {
    const stamp = STAMP.exec(line)?.[0]
    if (stamp !== undefined && stamp === before) ofOneTime.at(-1)?.push(line)
    else ofOneTime.push([line])
    before = stamp
  }
  return ofOneTime.flatMap((some) => some.map(masked).sort())
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/**
 * Whether output is what the page shows, apart from ids, times and column widths. `…` stands for anything within a
 * line, a line of it alone for any number of lines.
 */
export function isAsShown(shown: string, actual: string): boolean {
  const lines = (text: string) => settled(text.trimEnd().split('\n'))
  const pattern = lines(shown)
    .map((line) =>
      line.trim() === '…' ? '(?:[^\\n]*\\n)*?' : `${line.split('…').map(escaped).join('[^\\n]*?')}\\n`,
    )
    .join('')
  return new RegExp(`^${pattern}$`).test(`${lines(actual).join('\n')}\n`)
}

/** Ids and secrets that a page shows, with those of this run. */
export class Known {
  readonly #known = new Map<string, string>()

  /** The nth value of a form on the page is the nth that was printed. */
  learn(shown: string, actual: string): void {
    for (const form of CHANGING) {
      const wanted = shown.match(form) ?? []
      const seen = actual.match(form) ?? []
      for (const [index, text] of wanted.entries()) {
        const now = seen[index]
        if (now !== undefined && !this.#known.has(text)) this.#known.set(text, now)
      }
    }
  }

  /** Output of this run with the values of the page. */
  restore(output: string): string {
    return [...this.#known].reduce((text, [from, to]) => text.replaceAll(to, from), output)
  }

  /** A command of the page with the values of this run. */
  translate(command: string): string {
    return [...this.#known].reduce((text, [from, to]) => text.replaceAll(from, to), command)
  }
}
