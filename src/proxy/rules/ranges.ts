/** A part of a text. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Replaces parts that do not overlap, and leaves the rest byte for byte. */
export function replaceRanges<R extends Range>(
  text: string,
  ranges: readonly R[],
  write: (range: R) => string,
): string {
  let written = ''
  let at = 0
  for (const range of ranges.toSorted((one, other) => one.from - other.from)) {
    written += text.slice(at, range.from) + write(range)
    at = range.to
  }
  return written + text.slice(at)
}
