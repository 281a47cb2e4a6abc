import type { Summary, Turns } from './turns.ts'

/** One line of the table. */
export interface Row {
  readonly scenario: string
  readonly clients: number | undefined
  readonly figures: Partial<Omit<Summary, 'tail'>>
  /** What it is compared with, and how much that was. */
  readonly floor: string
  readonly ratio: number
  /** CPU time that the floor takes for one, ÷ what ours takes: steadier than the clock on a busy machine. */
  readonly cpuRatio?: number | undefined
  readonly goal: Goal | undefined
  /** Kept in the JSON file. */
  readonly detail?: object
}

export interface Goal {
  readonly text: string
  readonly holds: boolean
}

export function atLeast(ratio: number, goal: number): Goal {
  return { text: `≥ ${goal}`, holds: ratio >= goal }
}

export function atMost(ratio: number, goal: number): Goal {
  return { text: `≤ ${goal}`, holds: ratio <= goal }
}

/** Throughput beside the floor's, with a goal at one concurrency. */
export function throughputRows(
  scenario: string,
  turns: readonly Turns[],
  goal?: { clients: number; atLeast: number },
): Row[] {
  return turns.map(({ clients, ours, floor, ratio, ratios, cpuRatio }) => ({
    scenario,
    clients,
    figures: ours,
    floor: `bare node:http ${floor.perSecond.toFixed(0)}/s`,
    ratio,
    cpuRatio,
    goal: goal?.clients === clients ? atLeast(ratio, goal.atLeast) : undefined,
    detail: { floor, ratios },
  }))
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
  'Holds',
]

export function toMarkdown(rows: readonly Row[]): string {
  const lines = rows.map(({ scenario, clients, figures, floor, ratio, cpuRatio, goal }) => [
    scenario,
    clients === undefined ? '' : String(clients),
    show(figures.perSecond, 0),
    show(figures.p50, 2),
    show(figures.p95, 2),
    show(figures.p99, 2),
    show(figures.cores, 2),
    show(figures.rssMb, 0),
    floor,
    show(ratio, 3),
    show(cpuRatio, 3),
    goal?.text ?? '',
    goal === undefined ? '' : goal.holds ? 'yes' : '**no**',
  ])
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(HEAD), line(HEAD.map(() => '---')), ...lines.map(line)].join('\n')
}

function show(value: number | undefined, digits: number): string {
  return value === undefined || Number.isNaN(value) ? '' : value.toFixed(digits)
}
