/** Outside of classes: a class, an escape, or a character, and how often it may occur. */
const TOKEN =
  /\\(?:[dDwWsS]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[^A-Za-z0-9])|\[(?:\\.|[^\]\\])+\]|\((?:\?:)?|\)|\||\$|\.|[^\\[\](){}?*+|^$.]/y
const TIMES = /\{\d{1,4}\}|[?*+]|\{\d{1,4},\d{0,4}\}/y
const LONGEST = 512
/** Ways to choose among alternatives and optional parts; each may cost a look at the whole text. */
const MOST_WAYS = 256

/**
 * Whether a regular expression of a plugin takes time in proportion to the text, so that no text, which an agent may have sent, can
 * hold up the server: anchored, without back references and lookaround, no repetition of a group, at most one part whose length
 * is open, and few ways through its alternatives and optional parts.
 */
export function isLinearPattern(pattern: string): boolean {
  if (pattern.length > LONGEST || !pattern.startsWith('^')) return false
  let open = 0
  let ways = 1
  /** The alternatives of each group that is not closed yet. */
  const groups: number[] = []
  let at = 1
  while (at < pattern.length) {
    TOKEN.lastIndex = at
    const [token] = TOKEN.exec(pattern) ?? []
    if (token === undefined) return false
    at += token.length
    if (token.startsWith('(')) groups.push(1)
    else if (token === '|') {
      const alternatives = groups.pop()
      // Outside of a group the second alternative would not be anchored.
      if (alternatives === undefined) return false
      groups.push(alternatives + 1)
    } else {
      if (token === ')') ways *= groups.pop() ?? 1
      const times = timesAt(pattern, at)
      at += times.length
      if (times === '?') ways *= 2
      else if (times !== '' && token === ')') return false
      else if (times !== '' && !/^\{\d+\}$/.test(times)) open += 1
    }
  }
  return open <= 1 && ways <= MOST_WAYS && compiles(pattern)
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
