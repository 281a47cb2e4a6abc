/** Damerau-Levenshtein distance (adjacent transpositions count one), ignoring case. */
function distance(left: string, right: string): number {
  const a = left.toLowerCase()
  const b = right.toLowerCase()
  let older: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      let best = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + change)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (older[j - 2] ?? 0) + 1)
      }
      row.push(best)
    }
    older = previous
    previous = row
  }
  return previous[b.length] ?? 0
}

/** The closest known name, if at most a third of the letters differ. */
export function closest(name: string, known: readonly string[]): string | undefined {
  if (name.length > 80) return undefined
  let best: string | undefined
  let least = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const steps = distance(name, candidate)
    if (steps < least) {
      least = steps
      best = candidate
    }
  }
  return best
}

/** ` (did you mean "x"?)`, or an empty text. */
export function didYouMean(name: string, known: readonly string[]): string {
  const found = closest(name, known)
  return found === undefined ? '' : ` (did you mean "${found}"?)`
}
