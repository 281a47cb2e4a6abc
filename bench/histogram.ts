/** Times in µs, counted in buckets: exact below 1024 µs, within 0.4 % above. Nothing is allocated per sample. */
export interface Histogram {
  record(us: number): void
  clear(): void
  /** The time in ms that this share of the samples does not exceed; NaN without samples. */
  quantile(share: number): number
  count(): number
  /** Number and samples of every bucket that has some; `add` takes them into another. */
  counts(): Counts
  add(counts: Counts): void
}

export type Counts = readonly (readonly [bucket: number, samples: number])[]

const EXACT = 1_024
/** Buckets to each power of two above. */
const PARTS = 256
const POWERS = 22

export function createHistogram(): Histogram {
  const buckets = new Uint32Array(EXACT + POWERS * PARTS)
  let samples = 0
  return {
    record(us) {
      const index = bucketOf(us)
      buckets[index] = (buckets[index] ?? 0) + 1
      samples += 1
    },
    clear() {
      buckets.fill(0)
      samples = 0
    },
    quantile(share) {
      const wanted = Math.max(1, Math.ceil(share * samples))
      let seen = 0
      for (const [index, found] of buckets.entries()) {
        seen += found
        if (seen >= wanted) return middleOf(index) / 1_000
      }
      return Number.NaN
    },
    count: () => samples,
    counts: () => [...buckets.entries()].filter(([, found]) => found > 0),
    add(counts) {
      for (const [index, found] of counts) {
        buckets[index] = (buckets[index] ?? 0) + found
        samples += found
      }
    },
  }
}

function bucketOf(us: number): number {
  const whole = Math.max(0, Math.floor(us))
  if (whole < EXACT) return whole
  const power = Math.floor(Math.log2(whole)) - 10
  if (power >= POWERS) return EXACT + POWERS * PARTS - 1
  const part = Math.floor((whole / 2 ** (power + 10) - 1) * PARTS)
  return EXACT + power * PARTS + Math.min(part, PARTS - 1)
}

function middleOf(index: number): number {
  if (index < EXACT) return index
  const power = Math.floor((index - EXACT) / PARTS)
  const part = (index - EXACT) % PARTS
  return 2 ** (power + 10) * (1 + (part + 0.5) / PARTS)
}

/** The middle of these numbers; NaN of none. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other)
  const half = sorted.length / 2
  if (sorted.length % 2 === 1) return sorted[Math.floor(half)] ?? Number.NaN
  return ((sorted[half - 1] ?? Number.NaN) + (sorted[half] ?? Number.NaN)) / 2
}

/** The value that this share of the numbers does not exceed; NaN of none. */
export function quantileOf(numbers: readonly number[], share: number): number {
  const sorted = [...numbers].sort((one, other) => one - other)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}
