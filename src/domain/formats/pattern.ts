/** Outside of classes: a class, an escape, or a character, and how often it may occur. */
const TOKEN =
  /\\(?:[dDwWsS]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[^A-Za-z0-9])|\[(?:\\.|[^\]\\])+\]|\((?:\?:)?|\)|\||\$|\.|[^\\[\](){}?*+|^$.]/y
const TIMES = /\{\d{1,4}\}|[?*+]|\{\d{1,4},\d{0,4}\}/y
const LONGEST = 512
const MOST_TIMES = 1_024
/** How often a match may look at each character: the largest request, 64 KiB, then costs about 20 ms. */
const MOST_LOOKS = 128

/** What has been read of a pattern. */
interface Reading {
  /** Ways to choose among alternatives and optional parts; each may cost a look at the whole text. */
  ways: number
  /** The part whose length is open: how many lengths it may have. */
  open: number
  /** Characters that follow the open part: what is looked at again for each of its lengths. */
  behind: number
  /** The alternatives of each group that is not closed yet. */
  readonly groups: number[]
}

/**
 * Whether a regular expression of a plugin or a recipe takes little time in proportion to the text, so that no text, which an agent
 * may have sent, can hold up the server: anchored, without back references and lookaround, no repetition of a group, at most one part
 * whose length is open, and few looks at each character.
 */
export function isLinearPattern(pattern: string): boolean {
  if (pattern.length > LONGEST || !pattern.startsWith('^')) return false
  const read: Reading = { ways: 1, open: 0, behind: 0, groups: [] }
  for (let at = 1; at < pattern.length; ) {
    TOKEN.lastIndex = at
    const [token] = TOKEN.exec(pattern) ?? []
    if (token === undefined) return false
    at += token.length
    const times = timesAt(pattern, at)
    at += times.length
    if (!take(read, token, times)) return false
  }
  return read.ways * (1 + Math.min(read.open, read.behind)) <= MOST_LOOKS && compiles(pattern)
}

/** False for what no pattern may have. */
function take(read: Reading, token: string, times: string): boolean {
  const { groups } = read
  if (token.startsWith('(') || token === '|') {
    // Outside of a group the second alternative would not be anchored.
    const alternatives = token === '|' ? groups.pop() : 0
    if (alternatives === undefined || times !== '') return false
    groups.push(alternatives + 1)
    return true
  }
  if (token === ')') {
    read.ways *= groups.pop() ?? 1
    if (times === '?') read.ways *= 2
    return times === '' || times === '?'
  }
  if (times === '?') read.ways *= 2
  const [least, most] = boundsOf(times)
  if (least > MOST_TIMES) return false
  read.behind += read.open === 0 ? 0 : least
  if (most === least || times === '?') return true
  if (read.open > 0) return false
  read.open = most - least
  return true
}

/** How often: `[least, most]`. */
function boundsOf(times: string): readonly [number, number] {
  if (times === '' || times === '?') return [1, 1]
  if (times === '*' || times === '+') return [times === '*' ? 0 : 1, Number.POSITIVE_INFINITY]
  const [least = '', most = least] = times.slice(1, -1).split(',')
  return [Number(least), most === '' ? Number.POSITIVE_INFINITY : Number(most)]
}

function timesAt(pattern: string, at: number): string {
  TIMES.lastIndex = at
  return TIMES.exec(pattern)?.[0] ?? ''
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u').source !== ''
  } catch {
    return false
  }
}
