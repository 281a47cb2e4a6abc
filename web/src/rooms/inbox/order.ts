import type { PendingEnrollment } from '../../../../src/client/wire.ts'

export interface Placed {
  readonly row: PendingEnrollment
  /** It is not in the listing any more: somebody else has decided it, or it has expired. */
  readonly isGone: boolean
}

/**
 * Where each request stands. What is shown keeps its place, also what is gone by now, so that nothing moves under the pointer; what
 * has arrived since comes after it. What arrives together is grouped by agent, in the order in which the agents first asked.
 */
export function arrange(shown: readonly Placed[], rows: readonly PendingEnrollment[]): readonly Placed[] {
  const fresh = new Map(rows.map((row) => [row.id, row]))
  const kept = shown.map(({ row }) => ({ row: fresh.get(row.id) ?? row, isGone: !fresh.has(row.id) }))
  const known = new Set(shown.map(({ row }) => row.id))
  const arrived = rows.filter(({ id }) => !known.has(id))
  const groups = Map.groupBy(arrived, ({ name }) => name)
  return [...kept, ...[...groups.values()].flat().map((row) => ({ row, isGone: false }))]
}

/** How many requests of this agent follow, this one included; 0: it is not the first of its group. */
export function leads(placed: readonly Placed[], index: number): number {
  const name = placed[index]?.row.name
  if (placed[index - 1]?.row.name === name) return 0
  const end = placed.findIndex(({ row }, at) => at > index && row.name !== name)
  return (end === -1 ? placed.length : end) - index
}

/** The request to look at after this one: the next that waits, or else the last before it. */
export function nextOf(placed: readonly Placed[], id: string): string | undefined {
  const at = placed.findIndex(({ row }) => row.id === id)
  const isOpen = ({ row, isGone }: Placed) => !isGone && row.id !== id
  const after = placed.slice(at + 1).find(isOpen)
  return (after ?? placed.slice(0, Math.max(0, at)).findLast(isOpen))?.row.id
}
