import { unescapePercent } from './target.ts'

/** As the server bounds it. */
const LONGEST = 512
const LONGEST_SEGMENT = 64

/** `from` and `to`: where a placeholder stands in the path. */
export interface Covered {
  readonly from: number
  readonly to: number
}

/**
 * The path as sent, with `*` for each segment that looks like an id or a token, and for the placeholder. What follows a placeholder in
 * its segment is left out.
 */
export function templateOf(path: string, covered?: Covered): string {
  const written: string[] = []
  let length = 0
  let start = 1
  for (const segment of path.slice(1).split('/')) {
    const end = start + segment.length
    const holds = covered !== undefined && covered.from < end && covered.to > start
    const text = holds ? `${shown(path.slice(start, Math.max(start, covered.from)))}*` : shown(segment)
    start = end + 1
    length += text.length + 1
    // So that what is left out is seen.
    if (length > LONGEST - 3) return `/${[...written, '**'].join('/')}`
    written.push(text === '**' ? '*' : text)
  }
  return `/${written.join('/')}`
}

const shown = (segment: string) => (isId(segment) ? '*' : segment)

const UUID_OR_HEX = /^(?=.*\d)[0-9a-fA-F-]{8,}$/

function isId(segment: string): boolean {
  const text = segment.includes('%') ? unescapePercent(segment) : segment
  const { length } = text
  if (length > LONGEST_SEGMENT || segment.length > 2 * LONGEST_SEGMENT) return true
  // Parameters, addresses of mail, and what is not plain text.
  if (/[;=]|.@|[^ -~]/.test(text)) return true
  if (/^[A-Za-z_-]{0,19}$/.test(text)) return false
  const hasDigit = /\d/.test(text)
  const hasUpper = /[A-Z]/.test(text)
  const hasLower = /[a-z]/.test(text)
  if (hasDigit) {
    // A version by its date is not an id: `/2015-03-31/functions`.
    if (/^20\d\d-\d\d-\d\d$/.test(text)) return false
    if (length >= 24 || /^\d+$/.test(text) || UUID_OR_HEX.test(text)) return true
    if (length >= 12 && hasUpper && hasLower) return true
    return length >= 8 && hasUpper && !hasLower
  }
  return length >= 20 && hasUpper && hasLower && !/[-_. ]/.test(text)
}
