import type { AuditEntry } from '../../domain/audit-entry.ts'
import { lowestBodyAt } from '../../domain/ids.ts'
import { MINUTE_MS } from '../../domain/limits.ts'
import { SLOT_LENGTH, type Slot } from '../../store/tables/audit/forward.ts'
import type { Core } from '../context.ts'

/** Almost every entry appears within this time of its id; each look counts these again. */
const RECENT_MS = 2_000
/** Pause between two looks at everything after the position: on PostgreSQL that may be half a minute of entries, or more. */
const WHOLE_MS = 2_000
/** Of its time, at most this part is spent on such looks. */
const WHOLE_SHARE = 20
/** How far behind now a reader begins at most, if an open transaction holds the horizon back. */
const LOOK_BACK_MS = 10 * MINUTE_MS
/** Ids that are remembered. Of older slots only the count is known, and all of a slot is read again if that changes. */
const MOST_IDS = 20_000
const TAIL = 26 - SLOT_LENGTH

interface Known {
  count: number
  ids: Set<string> | undefined
}

export interface Look {
  /** Entries that appeared since the last look, oldest first; undefined if there were more than asked for. */
  readonly entries: readonly AuditEntry[] | undefined
  /** Body of an id: nothing appears before it any more, and all before it has been returned. */
  readonly position: string
}

/**
 * Reads what appears in the audit, for all streams of the node (`store/tables/audit/horizon.ts`). It compares the number of entries of
 * each 32 ms with the number that it has seen, and reads only where they differ: entries appear late, and out of order, all
 * the way back to the horizon, and reading all of them again each time would cost as much as issuing.
 */
export class AuditReader {
  readonly #core: Pick<Core, 'store'>
  readonly #known = new Map<string, Known>()
  #position: string | undefined
  #ids = 0
  #wholeAt = 0

  constructor(core: Pick<Core, 'store'>) {
    this.#core = core
  }

  get position(): string {
    return this.#position ?? ''
  }

  /** The first look returns nothing: it finds out where things are. `most`: of these entries. */
  async look(most: number): Promise<Look> {
    const { audit, now } = this.#core.store
    const horizon = await audit.horizon()
    const begun = performance.now()
    const first = this.#position === undefined
    this.#position ??= [horizon, lowestBodyAt(now() - LOOK_BACK_MS)].sort().at(-1) ?? ''
    const recent = lowestBodyAt(now() - RECENT_MS)
    const isWhole = begun >= this.#wholeAt || recent <= this.#position
    const slots = await audit.slots(startOf(isWhole ? this.#position : recent))
    if (isWhole) {
      const end = performance.now()
      this.#wholeAt = end + Math.max(WHOLE_MS, WHOLE_SHARE * (end - begun))
    }
    const changed = slots.filter(({ slot, count }) => count !== this.#known.get(slot)?.count)
    const fresh = changed.reduce((sum, one) => sum + one.count - (this.#known.get(one.slot)?.count ?? 0), 0)
    const isSkipped = first || fresh > most
    const entries = isSkipped ? this.#skip(changed) : await this.#read(slots, changed)
    if (isWhole && horizon > this.#position) this.#position = horizon
    this.#forget()
    return { entries: first ? [] : entries, position: this.#position }
  }

  #skip(changed: readonly Slot[]): undefined {
    for (const { slot, count } of changed) this.#set(slot, { count, ids: undefined })
  }

  async #read(slots: readonly Slot[], changed: readonly Slot[]): Promise<AuditEntry[]> {
    const found: AuditEntry[] = []
    for (const { from, to, count } of rangesOf(slots, new Set(changed))) {
      // Those that appear meanwhile are found by the next look.
      const entries = await this.#core.store.audit.between(startOf(from), endOf(to), count)
      found.push(...entries.filter((entry) => this.#isNew(entry)))
    }
    // Retention has deleted some.
    for (const { slot, count } of changed) {
      const known = this.#known.get(slot)
      if (known !== undefined && known.count > count) known.count = count
    }
    return found
  }

  #isNew({ id }: AuditEntry): boolean {
    const slot = id.slice(0, SLOT_LENGTH)
    let known = this.#known.get(slot)
    if (known?.ids === undefined) {
      known = { count: 0, ids: new Set() }
      this.#set(slot, known)
    }
    if (known.ids === undefined || known.ids.has(id)) return false
    known.ids.add(id)
    known.count = known.ids.size
    this.#ids += 1
    return true
  }

  #set(slot: string, known: Known): void {
    this.#ids -= this.#known.get(slot)?.ids?.size ?? 0
    this.#known.set(slot, known)
  }

  /** What lies behind the position, and the ids of the oldest slots. */
  #forget(): void {
    const before = this.position.slice(0, SLOT_LENGTH)
    for (const slot of this.#known.keys()) {
      if (slot >= before) continue
      this.#set(slot, { count: 0, ids: undefined })
      this.#known.delete(slot)
    }
    if (this.#ids <= MOST_IDS) return
    for (const slot of [...this.#known.keys()].sort()) {
      const known = this.#known.get(slot)
      if (known?.ids !== undefined) this.#set(slot, { count: known.count, ids: undefined })
      if (this.#ids <= MOST_IDS / 2) return
    }
  }
}

/** Before all ids of a slot, or of the slot of an id. */
const startOf = (id: string) => id.slice(0, SLOT_LENGTH) + '0'.repeat(TAIL)
const endOf = (slot: string) => slot + 'z'.repeat(TAIL)

interface Range {
  readonly from: string
  to: string
  count: number
}

/** Neighbours among the slots that have changed, so that they are read at once. */
function rangesOf(slots: readonly Slot[], changed: ReadonlySet<Slot>): Range[] {
  const ranges: Range[] = []
  let current: Range | undefined
  for (const one of slots) {
    if (!changed.has(one)) {
      current = undefined
    } else if (current === undefined) {
      current = { from: one.slot, to: one.slot, count: one.count }
      ranges.push(current)
    } else {
      current.to = one.slot
      current.count += one.count
    }
  }
  return ranges
}
