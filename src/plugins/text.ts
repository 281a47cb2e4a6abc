/** What stands for a secret that a plugin wrote where none belongs. */
const HIDDEN = '[redacted]'
/** Shorter values are words that occur by chance. */
const SHORTEST_SECRET = 4
const SHORTEST_LINE = 16
const LONGEST_MESSAGE = 300

export type Hide = (text: string) => string

/**
 * Replaces these secrets wherever they occur in a text: as they are, in the spellings of JSON, URLs and base64, and the lines of a
 * key. A text that was cut inside a secret keeps the piece, so hide before you cut.
 */
export function hiderOf(secrets: readonly string[]): Hide {
  const known = new Set<string>()
  for (const secret of secrets.filter(({ length }) => length >= SHORTEST_SECRET)) {
    const base64 = Buffer.from(secret)
    const spellings = [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret.toWellFormed()),
      base64.toString('base64').replace(/=+$/, ''),
      base64.toString('base64url'),
      ...secret.split('\n').filter((line) => line.length >= SHORTEST_LINE && !line.startsWith('-----')),
    ]
    for (const spelling of spellings) known.add(spelling)
  }
  const longestFirst = [...known].sort((a, b) => b.length - a.length)
  return (text) => longestFirst.reduce((clean, secret) => clean.replaceAll(secret, HIDDEN), text)
}

/** One short line that a person may read: no secret of the configuration, nothing that steers a terminal. */
export function cleanMessage(text: string, hide: Hide, longest = LONGEST_MESSAGE): string {
  const line = hide(text)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, ' ')
    .trim()
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line
}
