/** NaN for an empty list. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other)
  const half = sorted.length / 2
  if (sorted.length % 2 === 1) return sorted[Math.floor(half)] ?? Number.NaN
  return ((sorted[half - 1] ?? Number.NaN) + (sorted[half] ?? Number.NaN)) / 2
}
