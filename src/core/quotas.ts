import { Problem } from '../domain/problems.ts'

/** A limited number of credentials or runs, and how to count them in the store. */
export interface Quota {
  readonly key: string
  readonly limit: number
  /** It may stop counting at the limit. */
  count(): Promise<number>
  /** What a caller is told when it is full. */
  readonly message: string
}

/**
 * Numbers of active credentials, and of living runs (decisions.md §9). Counting thousands of rows for every issue would cost too much: the
 * count is kept, later issues are added to it, and near the limit it is counted again. One node never exceeds a
 * limit, however many requests come at once; several nodes may, by what the others issued in the last ten seconds.
 */
export interface Quotas {
  /** Runs `work`, which records one more. Throws `rate_limited` when the quota is full. */
  withPlace<T>(quota: Quota, work: () => Promise<T>): Promise<T>
}

interface Figure {
  /** Counted in the store at `at`, plus those recorded since. */
  seen: number
  at: number
  /** About to be recorded. */
  inFlight: number
  /** The count that is being made, shared by all who need it. */
  counting: Promise<void> | undefined
}

/** How long a count is trusted while it is below the limit. */
const TRUST_MS = 10_000
const MAX_FIGURES = 50_000

export function createQuotas(now: () => number): Quotas {
  const figures = new Map<string, Figure>()

  function figureOf(key: string): Figure {
    let figure = figures.get(key)
    if (figure === undefined) {
      if (figures.size >= MAX_FIGURES) figures.clear()
      figure = { seen: 0, at: Number.NEGATIVE_INFINITY, inFlight: 0, counting: undefined }
      figures.set(key, figure)
    }
    return figure
  }

  async function count(figure: Figure, quota: Quota): Promise<void> {
    const { seen } = figure
    const counted = await quota.count()
    // The count may have missed those recorded while it ran.
    figure.seen = counted + (figure.seen - seen)
    figure.at = now()
  }

  return {
    async withPlace(quota, work) {
      const figure = figureOf(quota.key)
      const isFull = () => figure.seen + figure.inFlight >= quota.limit
      if (figure.counting !== undefined || Math.abs(now() - figure.at) > TRUST_MS || isFull()) {
        figure.counting ??= count(figure, quota).finally(() => {
          figure.counting = undefined
        })
        await figure.counting
      }
      if (isFull()) {
        throw new Problem('rate_limited', {
          message: quota.message,
          retryAfterSeconds: 60,
        })
      }
      figure.inFlight += 1
      try {
        const result = await work()
        figure.seen += 1
        return result
      } finally {
        figure.inFlight -= 1
      }
    },
  }
}
