/**
 * The patterns of paths in rules (`Rule.path`). They are no regular expressions: each piece of text between stars is looked for once,
 * so no path takes long.
 */
export interface PathPattern {
  readonly segments: readonly SegmentPattern[]
  /** It ends in `**`: any number of segments may follow, also none. */
  readonly open: boolean
}

/** The texts between the stars of a segment: one is a whole segment as it is. `['', '']`: any segment that is not empty. */
export type SegmentPattern = readonly [string, ...string[]]

const LONGEST = 512
const MOST_SEGMENTS = 64
const MOST_STARS = 4

/** Returns what is wrong with it as text, without repeating it. */
export function readPathPattern(path: string, slashes: boolean): PathPattern | string {
  if (!path.startsWith('/')) return 'must begin with /'
  if (path.length > LONGEST) return `must have at most ${LONGEST} characters`
  if (!isPlainText(path)) return 'must not have control characters, nor halves of characters'
  if (/[\\?#]/.test(path)) return 'must not have \\, ? or #'
  const parts = path.slice(1).split('/')
  if (parts.length > MOST_SEGMENTS) return `must have at most ${MOST_SEGMENTS} segments`
  const open = parts.at(-1) === '**'
  if (open) parts.pop()
  if (parts.some((part) => part.includes('**'))) return 'may have ** only as its last segment'
  if (parts.slice(0, -1).includes('') || (open && parts.includes(''))) return 'must not have empty segments'
  const segments: SegmentPattern[] = []
  for (const part of parts) {
    const segment = readSegment(part, slashes)
    if (typeof segment === 'string') return segment
    segments.push(segment)
  }
  return { segments, open }
}

function readSegment(part: string, slashes: boolean): SegmentPattern | string {
  const text = slashes ? part.replaceAll(/%2f/gi, '/') : part
  if (/%[0-9a-f]{2}/i.test(text)) {
    return slashes ? 'may have no escape other than %2F' : 'must not be escaped; %2F needs "slashes"'
  }
  if (text.split('/').some((piece) => piece === '.' || piece === '..')) return 'must not have dot segments'
  const [first = '', ...rest] = text.split('*')
  return rest.length > MOST_STARS ? `may have at most ${MOST_STARS} * in a segment` : [first, ...rest]
}

/** Invisible characters, such as those that turn the direction of writing, could show one rule and mean another. */
function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)
}

/** `segments` are decoded, as the pattern is. */
export function matchesPath({ segments: patterns, open }: PathPattern, segments: readonly string[]): boolean {
  if (open ? segments.length < patterns.length : segments.length !== patterns.length) return false
  for (let index = 0; index < patterns.length; index += 1) {
    const pattern = patterns[index]
    const segment = segments[index]
    if (pattern === undefined || segment === undefined || !matchesSegment(pattern, segment)) return false
  }
  return true
}

function matchesSegment(pattern: SegmentPattern, segment: string): boolean {
  const [first] = pattern
  if (pattern.length === 1) return segment === first
  const last = pattern[pattern.length - 1] ?? ''
  if (segment === '' || segment.length < first.length + last.length) return false
  if (!segment.startsWith(first) || !segment.endsWith(last)) return false
  const end = segment.length - last.length
  let at = first.length
  // The earliest place of each text is as good as any later one.
  for (let index = 1; index < pattern.length - 1; index += 1) {
    const text = pattern[index] ?? ''
    const found = segment.indexOf(text, at)
    if (found === -1 || found + text.length > end) return false
    at = found + text.length
  }
  return true
}
