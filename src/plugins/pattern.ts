/** Outside of classes: a class, an escape, or a character, and how often it may occur. */
const TOKEN =
  /\\(?:[dDwWsS]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[^A-Za-z0-9])|\[(?:\\.|[^\]\\])+\]|\((?:\?:)?|\)|\||\$|\.|[^\\[\](){}?*+|^$.]/y
const TIMES = /\{\d{1,4}\}|[?*+]|\{\d{1,4},\d{0,4}\}/y
const LONGEST = 512
const MOST_OPTIONAL = 8

/**
 * Whether a regular expression of a plugin takes time in proportion to the text, so that no text, which an agent may have sent, can
 * hold up the server: anchored, without back references and lookaround, no repetition of a group, and at most one part whose length
 * is open.
 */
export function isLinearPattern(pattern: string): boolean {
  if (pattern.length > LONGEST || !pattern.startsWith('^')) return false
  let open = 0
  let optional = 0
  let at = 1
  while (at < pattern.length) {
    TOKEN.lastIndex = at
    const [token] = TOKEN.exec(pattern) ?? []
    if (token === undefined) return false
    at += token.length
    TIMES.lastIndex = at
    const [times] = token.startsWith('(') || token === '|' ? [] : (TIMES.exec(pattern) ?? [])
    if (times === undefined) continue
    at += times.length
    if (times === '?') optional += 1
    else if (token === ')') return false
    else if (!/^\{\d+\}$/.test(times)) open += 1
  }
  return open <= 1 && optional <= MOST_OPTIONAL && compiles(pattern)
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u').source !== ''
  } catch {
    return false
  }
}
