/** `--against DIR`: measures this checkout and another one alternately, under the same load. */
import { alternate, alternateBursts, type Pace, type RunningTarget } from './bursts.ts'
import { againstRows, type MeasuredPair, type Row } from './report.ts'
import type { Bench } from './scenario.ts'
import type { Checkout } from './server.ts'

/** Alternates bursts against the servers of both checkouts. */
export async function burstsAgainst(
  bench: Bench,
  against: Checkout,
  title: string,
  open: (checkout: Checkout) => Promise<RunningTarget>,
  pace: Pace = bench.pace,
): Promise<Row[]> {
  const reference = await open(against)
  const ours = await open(bench.checkout)
  const comparisons = await alternateBursts(title, ours, reference, pace, bench.say)
  await ours.stop()
  await reference.stop()
  return againstRows(title, against.directory, comparisons)
}

/** Measures this checkout and then the other one, if there is one. `whose` begins the names of the other's rows. */
export async function rowsOfEach(
  { checkout, against }: Bench,
  measure: (each: Checkout, whose: string) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const rows = [...(await measure(checkout, ''))]
  if (against !== undefined) rows.push(...(await measure(against, `${against.directory}: `)))
  return rows
}

/** Repeats a measurement of both checkouts. */
export async function alternatePairs<T>(
  count: number,
  measure: { ours: () => Promise<T>; reference: () => Promise<T> },
): Promise<{ ours: T; reference: T }[]> {
  const pairs: { ours: T; reference: T }[] = []
  for (let n = 0; n < count; n += 1) pairs.push(await alternate(n, measure.ours, measure.reference))
  return pairs
}

/** One figure of such pairs. */
export function figureOf<T>(
  pairs: readonly { ours: T; reference: T }[],
  figure: (one: T) => number,
): MeasuredPair[] {
  return pairs.map(({ ours, reference }) => ({ ours: figure(ours), reference: figure(reference) }))
}
