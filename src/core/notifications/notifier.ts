import type { AuditEntry } from '../../domain/audit-entry.ts'
import { lowestBodyAt } from '../../domain/ids.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../domain/limits.ts'
import { type Notice, NotTaken, type Receiver } from '../../domain/notice.ts'
import type { StoredReceiver } from '../../domain/receiver.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import type { Notifier } from '../parts.ts'
import { countTold, noticesOf } from './notices.ts'

/** Time that a receiver has to take one message. */
const SEND_MS = 10_000
/** A node that tells a receiver holds it for so long; it renews that when half is over. */
const HOLD_MS = 30_000
/** Entries that are read at once. */
const PAGE = 100
/** Told entries that the horizon has not passed yet; with more, the receiver waits for it. */
const MOST_AHEAD = 1_000
/** Entries that are counted at once when they are given up. */
const DROP_PAGE = 1_000
const FIRST_RETRY_MS = 1_000
const RETRY_MS = 30_000
const HOURLY_AFTER_MS = 10 * MINUTE_MS
/** After a day without success what is older than a day is given up. */
const GIVE_UP_MS = DAY_MS

type Parts = Pick<Core, 'store' | 'ids' | 'log'>

interface Line {
  readonly receiver: Receiver
  /** Since when it is configured here, epoch ms. */
  readonly since: number
  readonly ending: AbortController
  /** Since the start, or the last success. */
  failures: number
  failingFrom: number | undefined
  /** Epoch ms. */
  nextAt: number
  /** The last round ended with a failure of ours. */
  isBroken: boolean
  /** Entries after the position of which nothing is told. */
  readonly skipped: Set<string>
  running: Promise<void> | undefined
}

/**
 * Tells receivers of what they should know (ADR 0059): each on its own, in the order of the audit, at least once. The store has a
 * position for each, which follows the horizon (`store/tables/audit/horizon.ts`), and the entries after it that were told. A node
 * that is killed between a message and that record leaves it to be sent again. Of several nodes one holds a receiver.
 */
export function createNotifier(core: Parts): Notifier {
  const self = core.ids.body()
  let lines = new Map<string, Line>()
  /** Those that were replaced and still run. */
  const leaving = new Set<Promise<void>>()

  function begin(line: Line): void {
    if (line.running !== undefined || line.ending.signal.aborted || core.store.now() < line.nextAt) return
    line.running = tell(core, self, line).finally(() => {
      line.running = undefined
    })
  }

  function end(line: Line): Promise<void> {
    line.ending.abort()
    const ended = Promise.resolve(line.running)
    leaving.add(ended)
    return ended.finally(() => leaving.delete(ended))
  }

  return {
    setReceivers(receivers) {
      const before = lines
      lines = new Map(receivers.map((receiver) => [receiver.name, newLine(receiver, core.store.now())]))
      for (const line of before.values()) void end(line)
      // One line at a time tells a receiver: the row has what the old one has told.
      for (const [name, line] of lines) {
        line.running = before.get(name)?.running?.then(() => {
          line.running = undefined
        })
      }
    },
    async tellDue() {
      for (const line of lines.values()) begin(line)
      await Promise.all([...lines.values()].map(({ running }) => running))
    },
    async test(name, notice) {
      const line = lines.get(name)
      if (line === undefined) return undefined
      try {
        await send(line, notice)
        // It works: what waits for the next try is sent now.
        line.nextAt = 0
        return { isTaken: true }
      } catch (error) {
        const { reason } = asNotTaken(error)
        core.log.warn({ receiver: name, reason, err: error }, 'a test message was not taken')
        return { isTaken: false, reason }
      }
    },
    async stop() {
      const names = [...lines.keys()]
      await Promise.all([...lines.values()].map(end))
      await Promise.all(leaving)
      await Promise.all(names.map((name) => release(core, self, name)))
    },
  }
}

function newLine(receiver: Receiver, since: number): Line {
  return {
    receiver,
    since,
    ending: new AbortController(),
    failures: 0,
    failingFrom: undefined,
    nextAt: 0,
    isBroken: false,
    skipped: new Set(),
    running: undefined,
  }
}

/** One round: everything that is there, until the receiver fails. Never throws. */
async function tell(core: Parts, self: string, line: Line): Promise<void> {
  try {
    for (;;) {
      const held = await hold(core, self, line)
      const hasMore = held !== undefined && (await tellPage(core, line, held))
      line.isBroken = false
      if (!hasMore) return
    }
  } catch (error) {
    const level = line.isBroken ? 'debug' : 'error'
    core.log[level](
      { err: error, receiver: line.receiver.name },
      'a receiver could not be told and will be, once the store can be used',
    )
    line.isBroken = true
    line.nextAt = core.store.now() + FIRST_RETRY_MS
  }
}

/** Whether there may be more. */
async function tellPage(core: Parts, line: Line, held: StoredReceiver): Promise<boolean> {
  const { audit: entries } = core.store
  const horizon = await entries.horizon()
  const kept = await giveUpOld(core, held, horizon)
  if (kept === undefined) return true
  const done = new Set([...kept.told, ...line.skipped])
  const found = await entries.notable(kept.position, PAGE + done.size)
  const fresh = found.filter(({ id }) => !done.has(id)).slice(0, PAGE)
  const isFull = kept.told.length >= MOST_AHEAD
  const row = isFull ? kept : await tellOf(core, line, kept, fresh)
  if (row === undefined) return false
  const told = new Set([...row.told, ...line.skipped])
  const stop = found.findIndex(({ id }) => id >= horizon || !told.has(id))
  const position = (stop === -1 ? found : found.slice(0, stop)).at(-1)?.id
  if (position !== undefined) {
    const ahead = row.told.filter((id) => id > position)
    if ((await keep(core, row, { ...row, position, told: ahead })) === undefined) return false
    for (const id of line.skipped) if (id <= position) line.skipped.delete(id)
  }
  return fresh.length === PAGE && !isFull
}

/** Sends the messages of these entries. Returns the row; undefined: the receiver failed, or another node has it now. */
async function tellOf(
  core: Parts,
  line: Line,
  before: StoredReceiver,
  entries: readonly AuditEntry[],
): Promise<StoredReceiver | undefined> {
  const notices = await noticesOf(core, entries)
  const named = new Set(notices.flatMap(({ ids }) => ids))
  for (const { id } of entries) if (!named.has(id)) line.skipped.add(id)
  let row = before
  for (const { notice, ids } of notices) {
    if (line.ending.signal.aborted) return undefined
    try {
      await send(line, notice)
    } catch (error) {
      await fail(core, line, row, error)
      return undefined
    }
    succeed(core, line)
    const next = await keep(core, row, { ...row, failingSince: null, told: [...row.told, ...ids] })
    if (next === undefined) return undefined
    row = next
  }
  return row
}

async function send({ receiver, ending }: Line, notice: Notice): Promise<void> {
  await receiver.send(notice, AbortSignal.any([ending.signal, AbortSignal.timeout(SEND_MS)]))
}

function succeed({ log }: Parts, line: Line): void {
  if (line.failures > 0) log.info({ receiver: line.receiver.name }, 'a receiver takes notifications again')
  line.failures = 0
  line.failingFrom = undefined
  line.nextAt = 0
}

async function fail(core: Parts, line: Line, row: StoredReceiver, error: unknown): Promise<void> {
  if (line.ending.signal.aborted) return
  const now = core.store.now()
  line.failures += 1
  line.failingFrom ??= now
  line.nextAt = now + retryIn(line.failures, now - line.failingFrom)
  const { reason } = asNotTaken(error)
  core.log[line.failures === 1 ? 'warn' : 'debug'](
    { receiver: line.receiver.name, reason, err: error },
    'a receiver did not take a notification; it will be tried again',
  )
  if (row.failingSince === null) await keep(core, row, { ...row, failingSince: now })
}

/** At most 30 s for ten minutes, then an hour. */
function retryIn(failures: number, failingMs: number): number {
  if (failingMs >= HOURLY_AFTER_MS) return HOUR_MS
  return Math.min(RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10))
}

function asNotTaken(error: unknown): NotTaken {
  return error instanceof NotTaken ? error : new NotTaken('unreachable', String(error), { cause: error })
}

/** The row of the receiver, held by this node; undefined while another one holds it. */
async function hold(
  core: Parts,
  self: string,
  { receiver, since }: Line,
): Promise<StoredReceiver | undefined> {
  const { receivers, audit: entries, now, commit, hasOtherNodes } = core.store
  const found = await receivers.find(receiver.name)
  const heldUntil = now() + HOLD_MS
  if (found === undefined) {
    // A new one is told of what has come since it is configured. While old transactions are open the horizon may be far behind.
    const latest = [await entries.horizon(), lowestBodyAt(now() - MINUTE_MS)].sort().at(-1) ?? ''
    const position = [latest, lowestBodyAt(since)].sort()[0] ?? ''
    const row = { name: receiver.name, position, told: [], failingSince: null, holder: self, heldUntil }
    return (await commit([receivers.insert(row)])).done ? row : undefined
  }
  const isOurs = found.holder === self && found.heldUntil - now() > HOLD_MS / 2
  if (isOurs || (!hasOtherNodes && found.holder === self)) return found
  if (hasOtherNodes && found.holder !== self && found.heldUntil > now()) return undefined
  return keep(core, found, { ...found, holder: self, heldUntil })
}

/** Stores the row, and holds it for longer. Undefined: another node has it now. */
async function keep(
  core: Parts,
  before: StoredReceiver,
  after: StoredReceiver,
  more: readonly Step[] = [],
): Promise<StoredReceiver | undefined> {
  const held = { ...after, heldUntil: core.store.now() + HOLD_MS }
  const outcome = await core.store.commit([core.store.receivers.replace(before, held), ...more])
  return outcome.done ? held : undefined
}

async function release({ store, log }: Parts, self: string, name: string): Promise<void> {
  if (!store.hasOtherNodes) return
  try {
    const found = await store.receivers.find(name)
    if (found?.holder === self)
      await store.commit([store.receivers.replace(found, { ...found, heldUntil: 0 })])
  } catch (error) {
    log.warn({ err: error, receiver: name }, 'another node can only tell this receiver in half a minute')
  }
}

/**
 * For a receiver that has taken nothing for a day: passes over what is older than a day, and records how much that was.
 * Returns the row; undefined when it was changed, and has to be read again.
 */
async function giveUpOld(
  core: Parts,
  row: StoredReceiver,
  horizon: string,
): Promise<StoredReceiver | undefined> {
  const now = core.store.now()
  if (row.failingSince === null || now - row.failingSince < GIVE_UP_MS) return row
  const before = [lowestBodyAt(now - GIVE_UP_MS), horizon].sort()[0] ?? ''
  const found = await core.store.audit.notable(row.position, DROP_PAGE)
  const old = found.filter(({ id }) => id < before)
  const lost = old.filter(({ id }) => !row.told.includes(id))
  const position = old.at(-1)?.id
  if (position === undefined) return row
  const count = await countTold(core, lost)
  core.log.warn({ receiver: row.name, count }, 'notifications older than a day were given up')
  const entry = audit(core, SYSTEM, {
    action: 'notification.dropped',
    outcome: 'failed',
    details: { receiver: row.name, count },
  })
  const ahead = row.told.filter((id) => id > position)
  await keep(core, row, { ...row, position, told: ahead }, count === 0 ? [] : [entry])
  return undefined
}
