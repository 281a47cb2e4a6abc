import type { AuditEntry } from '../../domain/audit-entry.ts'
import { lowestBodyAt } from '../../domain/ids.ts'
import { MAX_STREAMS, MAX_STREAMS_PER_CALLER } from '../../domain/limits.ts'
import type { Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import type { Feed, LiveStream, PlacedEntry } from '../parts.ts'
import { currentCallers, type Watched } from './current-callers.ts'
import { createPlaces } from './places.ts'
import { isSameReach, type Reach, reaches, reachOf } from './reach.ts'
import { AuditReader } from './reader.ts'

/** Pause between two rounds. Each round finds the callers that have ended; not each one reads the audit. */
const ROUND_MS = 250
/** How long the feed pauses after a look that found too much: longer where the one before did, too, as the pages read again no sooner. */
const BUSY_MS = 2_000
const STILL_BUSY_MS = 5_000
/** And for each stream that it wrote to: writing costs more than reading. */
const TOLD_MS = 3
/** The feed looks a caller up again before it sends anything, if the last look was longer ago than this. */
const CHECK_MS = 500
/** A stream says at least so often that it lives. */
const KEEP_MS = 12_000
/**
 * Entries that streams are told of, in one look and on average; each 25 streams add what one costs. Nobody follows more by eye,
 * and sending all of it to hundreds of readers would cost more than issuing.
 */
const BURST = { count: 1_000, perMs: 5_000 }
const STREAMS_THAT_DOUBLE = 25
/** Entries that a stream may be behind when it begins. */
const MOST_BEHIND = 1_000
const LAST = 'z'.repeat(26)

type Parts = Pick<Core, 'store' | 'callers' | 'log'>

interface Line extends Watched {
  caller: Caller
  readonly reach: Reach
  readonly matches: ((entry: AuditEntry) => boolean) | undefined
  readonly stream: LiveStream
  /** Where it goes on; undefined until the reader knows where it is. */
  place: string | undefined
  /** Of its past it is told from here on. */
  readonly since: string
  /** It is told later of what appears while its past is read; undefined: its past has been read. */
  waiting: PlacedEntry[] | undefined
  /** Ids that its past had, after the position of the reader. */
  readonly told: Set<string>
  /** `performance.now()` of the last word. */
  spokenAt: number
  leave(): void
}

/** See `Feed`. All streams of the node are looked after by one loop, which runs while there are any. */
export function createFeed(core: Parts): Feed {
  const lines = new Set<Line>()
  const places = createPlaces(MAX_STREAMS_PER_CALLER, MAX_STREAMS, 'streams of events')
  let running: Promise<void> | undefined
  let wake = () => {}
  let isClosed = false

  function begin(): void {
    if (running !== undefined) return
    running = run().finally(() => {
      running = undefined
      if (lines.size > 0) begin()
    })
  }

  async function run(): Promise<void> {
    const round = createRound(core, lines)
    while (lines.size > 0) {
      await round()
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ROUND_MS)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  return {
    join({ caller, bearer }, matches, after, stream) {
      const giveBack = places.take(caller)
      const begun = lowestBodyAt(core.store.now())
      const line: Line = {
        caller,
        bearer,
        reach: reachOf(caller) ?? { isWhole: false, areas: [] },
        matches,
        stream,
        // One from a clock that is ahead would be told of nothing.
        place: after === undefined ? undefined : [after, begun].sort()[0],
        // What appears before the first look belongs to the past of a new one, too.
        since: after === undefined ? begun : '',
        waiting: [],
        told: new Set(),
        spokenAt: 0,
        leave: () => {
          giveBack()
          lines.delete(line)
          if (lines.size === 0) wake()
        },
      }
      if (isClosed) {
        giveBack()
        stream.end()
        return line
      }
      lines.add(line)
      begin()
      return line
    },
    async close() {
      isClosed = true
      for (const line of [...lines]) endLine(line)
      wake()
      await running
    },
  }
}

function endLine({ stream, leave }: Line): void {
  leave()
  stream.end()
}

/** One round for all lines. Never rejects. */
function createRound(core: Parts, lines: ReadonlySet<Line>): () => Promise<void> {
  const reader = new AuditReader(core)
  const budget = createBudget()
  let isFailing = false
  let quietUntil = 0
  let wasTooMuch = false

  async function look(): Promise<void> {
    let checkedAt = performance.now()
    await endOld(core, [...lines])
    if (checkedAt < quietUntil) return
    // Those that come meanwhile may have missed what this look finds.
    const present = [...lines]
    const cost = 1 + present.length / STREAMS_THAT_DOUBLE
    const { entries, position } = await reader.look(Math.floor(budget.left() / cost))
    if (performance.now() - checkedAt > CHECK_MS) {
      checkedAt = performance.now()
      await endOld(core, present)
    }
    if (entries !== undefined) budget.take(entries.length * cost)
    const placed = entries && placedUpTo(position, entries)
    let told = 0
    for (const line of present) {
      if (!lines.has(line)) continue
      const before = line.spokenAt
      if (before === 0) open(line, position)
      else if (placed === undefined) reset(line, position)
      else tellOrHold(line, placed, position)
      if (line.spokenAt !== before) told += 1
    }
    const isTooMuch = placed === undefined
    const pause = isTooMuch ? (wasTooMuch ? STILL_BUSY_MS : BUSY_MS) : 0
    wasTooMuch = isTooMuch
    quietUntil = performance.now() + Math.max(told * TOLD_MS, pause)
  }

  function open(line: Line, position: string): void {
    line.place ??= position
    keep(line)
    void readPast(line)
  }

  /** What lies between the place of a new stream and now. */
  async function readPast(line: Line): Promise<void> {
    const { position } = reader
    try {
      const from = [line.place ?? '', line.since].sort().at(-1) ?? ''
      const past = await core.store.audit.between(from, LAST, MOST_BEHIND + 1)
      if (!lines.has(line)) return
      const waiting = line.waiting ?? []
      line.waiting = undefined
      if (past.length > MOST_BEHIND) return reset(line, position)
      tell(line, placedUpTo(position, past), position)
      for (const { id } of past) line.told.add(id)
      tell(line, waiting, position)
    } catch (error) {
      core.log.warn({ err: error }, 'a stream of events could not be continued')
      if (lines.has(line)) endLine(line)
    }
  }

  return async () => {
    try {
      await look()
      isFailing = false
    } catch (error) {
      core.log[isFailing ? 'debug' : 'error']({ err: error }, 'streams of events wait for the store')
      isFailing = true
    }
    const silentSince = performance.now() - KEEP_MS
    for (const line of lines) if (line.spokenAt > 0 && line.spokenAt < silentSince) keep(line)
  }
}

/** Ends the lines whose callers have ended, or may not follow the same as before. */
async function endOld(core: Parts, lines: readonly Line[]): Promise<void> {
  const callers = await currentCallers(core, lines)
  for (const [index, line] of lines.entries()) {
    const caller = callers[index]
    if (caller === line.caller) continue
    const reach = caller && reachOf(caller)
    if (caller === undefined || reach === undefined || !isSameReach(reach, line.reach)) endLine(line)
    else line.caller = caller
  }
}

function tellOrHold(line: Line, placed: readonly PlacedEntry[], position: string): void {
  if (line.waiting === undefined) {
    tell(line, placed, position)
    return
  }
  line.waiting.push(...placed)
  if (line.waiting.length > MOST_BEHIND) reset(line, position)
}

function tell(line: Line, placed: readonly PlacedEntry[], position: string): void {
  const some = partFor(line, placed)
  if (some.length > 0) {
    advance(line, some.at(-1)?.place ?? '')
    speak(line, ({ stream, reach }) => stream.entries(some, reach.isWhole))
  }
  // Also if none of them was for this stream.
  advance(line, position)
  for (const id of line.told) if (id < position) line.told.delete(id)
}

/** What of these is for this stream: the same array for all that get everything. */
function partFor(line: Line, placed: readonly PlacedEntry[]): readonly PlacedEntry[] {
  const { reach, matches, told, place = '' } = line
  const isAhead = placed[0] !== undefined && placed[0].place < place
  if (reach.isWhole && matches === undefined && told.size === 0 && !isAhead) return placed
  return placed
    .filter(
      ({ entry }) => !told.delete(entry.id) && reaches(reach, entry.action) && matches?.(entry) !== false,
    )
    .map((one) => (one.place < place ? { ...one, place } : one))
}

function placedUpTo(position: string, entries: readonly AuditEntry[]): PlacedEntry[] {
  return entries.map((entry) => ({ entry, place: entry.id < position ? entry.id : position }))
}

function reset(line: Line, position: string): void {
  line.waiting = undefined
  line.told.clear()
  advance(line, position)
  speak(line, ({ stream }, place) => stream.reset(place))
}

/** A place never goes back: that of another node may be ahead. While its past is read, it stays. */
function advance(line: Line, to: string): void {
  if (line.waiting === undefined && line.place !== undefined && to > line.place) line.place = to
}

function speak(line: Line, say: (line: Line, place: string) => void): void {
  line.spokenAt = performance.now()
  say(line, line.place ?? '')
}

function keep(line: Line): void {
  speak(line, ({ stream }, place) => stream.keep(place))
}

/** How many entries may be told of now. */
function createBudget() {
  let left = BURST.count
  let at = performance.now()
  return {
    left(): number {
      const now = performance.now()
      left = Math.min(BURST.count, left + ((now - at) * BURST.count) / BURST.perMs)
      at = now
      return Math.floor(left)
    },
    take(count: number): void {
      left -= count
    },
  }
}
