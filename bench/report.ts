import type { Comparison, Summary } from './bursts.ts'
import { median } from './median.ts'

/** One line of the table. */
export interface Row {
  readonly scenario: string
  readonly clients: number | undefined
  readonly figures: Partial<Omit<Summary, 'tail'>>
  /** The baseline of the comparison, and its figures. */
  readonly comparedWith: string
  readonly ratio: number
  /** CPU time per request of the reference ÷ ours: steadier than throughput on a busy machine. */
  readonly cpuRatio?: number | undefined
  readonly goal: Goal | undefined
  /** Only in the JSON file. */
  readonly detail?: object
}

export interface Goal {
  readonly text: string
  /** Undefined if the measurement is too noisy to tell. */
  readonly holds: boolean | undefined
}

export function atLeast(ratio: number, goal: number): Goal {
  return { text: `≥ ${goal}`, holds: ratio >= goal }
}

export function atMost(ratio: number, goal: number): Goal {
  return { text: `≤ ${goal}`, holds: ratio <= goal }
}

/** Throughput compared with the baseline server, with a goal at one concurrency. */
export function baselineRows(
  scenario: string,
  comparisons: readonly Comparison[],
  goal?: { clients: number; atLeast: number },
): Row[] {
  return comparisons.map(({ clients, ours, reference, ratio, ratios, cpuRatio }) => ({
    scenario,
    clients,
    figures: ours,
    comparedWith: `bare node:http ${reference.perSecond.toFixed(0)}/s`,
    ratio,
    cpuRatio,
    goal: goal?.clients === clients ? atLeast(ratio, goal.atLeast) : undefined,
    detail: { reference, ratios },
  }))
}

/** Throughput compared with another checkout; the goal is to lose no more than the noise. */
export function againstRows(scenario: string, other: string, comparisons: readonly Comparison[]): Row[] {
  return comparisons.map(({ clients, ours, reference, ratio, ratios, cpuRatio }) => ({
    scenario,
    clients,
    figures: ours,
    comparedWith: `${other}: ${reference.perSecond.toFixed(0)}/s, p50 ${reference.p50.toFixed(2)}, p99 ${reference.p99.toFixed(2)} ms`,
    ratio,
    cpuRatio,
    goal: withinNoise(ratios, 'more'),
    detail: { reference, ratios },
  }))
}

export interface MeasuredPair {
  readonly ours: number
  readonly reference: number
}

/** One figure compared with that of another checkout. */
export function againstRow(
  scenario: string,
  other: string,
  pairs: readonly MeasuredPair[],
  unit: 'ms' | 'MB' | '/s',
): Row {
  const ratios = pairs.map((pair) => pair.ours / pair.reference)
  const ratio = median(ratios)
  const ours = median(pairs.map((pair) => pair.ours))
  const reference = median(pairs.map((pair) => pair.reference))
  const figures = { ms: { p50: ours }, MB: { rssMb: ours }, '/s': { perSecond: ours } }
  return {
    scenario,
    clients: undefined,
    figures: figures[unit],
    comparedWith: `${other}: ${reference.toFixed(1)} ${unit}`,
    ratio,
    goal: withinNoise(ratios, unit === '/s' ? 'more' : 'less'),
    detail: { pairs },
  }
}

/** Above this the measurement decides nothing. */
const MOST_NOISE = 0.2

/** The noise is twice the median absolute deviation of the pairs. */
function withinNoise(ratios: readonly number[], better: 'more' | 'less'): Goal {
  const ratio = median(ratios)
  const noise = 2 * median(ratios.map((one) => Math.abs(one - ratio)))
  if (!(noise <= MOST_NOISE)) return { text: `noise ${(100 * noise).toFixed(0)} %`, holds: undefined }
  if (better === 'more') return atLeast(ratio, Number((1 - noise).toFixed(3)))
  return atMost(ratio, Number((1 + noise).toFixed(3)))
}

const HEAD = [
  'Scenario',
  'Clients',
  'Per second',
  'p50 ms',
  'p95 ms',
  'p99 ms',
  'Cores',
  'RSS MB',
  'Compared with',
  'Ratio',
  'CPU ratio',
  'Goal',
  'Met',
]

export function toMarkdown(rows: readonly Row[]): string {
  const lines = rows.map(({ scenario, clients, figures, comparedWith, ratio, cpuRatio, goal }) => [
    scenario,
    clients === undefined ? '' : String(clients),
    show(figures.perSecond, 0),
    show(figures.p50, 2),
    show(figures.p95, 2),
    show(figures.p99, 2),
    show(figures.cores, 2),
    show(figures.rssMb, 0),
    comparedWith,
    show(ratio, 3),
    show(cpuRatio, 3),
    goal?.text ?? '',
    goal === undefined ? '' : shownVerdict(goal),
  ])
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(HEAD), line(HEAD.map(() => '---')), ...lines.map(line)].join('\n')
}

function shownVerdict({ holds }: Goal): string {
  if (holds === undefined) return 'unclear'
  return holds ? 'yes' : '**no**'
}

function show(value: number | undefined, digits: number): string {
  return value === undefined || Number.isNaN(value) ? '' : value.toFixed(digits)
}
