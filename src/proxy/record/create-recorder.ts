import { pause } from '../../client/abort.ts'
import type { Client } from '../../client/client.ts'
import { isGone, MayflyError } from '../../client/errors.ts'
import type { RequestBatch } from '../../client/wire.ts'
import { MAX_LINES } from '../../domain/run-request.ts'
import type { ProxyLog, Recorder, RequestLine } from '../types.ts'
import { newBatchId } from './batch-id.ts'
import { lineOnWire, takeBatch, type WireLine } from './lines.ts'

export interface RecorderOptions {
  readonly runs: Pick<Client['runs'], 'record'>
  readonly run: string
  readonly log: ProxyLog
  /** Milliseconds, never set back. */
  monotonic(): number
}

export interface Totals {
  readonly requests: number
  readonly refused: number
  readonly misused: number
  readonly redacted: number
  /** Lines that the server did not take. */
  readonly lost: number
}

export interface BatchRecorder extends Recorder {
  totals(): Totals
  /** Why nothing new may be served: what is done could not be recorded. */
  whyBehind(): string | undefined
  /** Sends what is left, for at most this time. */
  close(withinMs: number): Promise<void>
}

const EVERY_MS = 500
/** A batch that is worth its request, where the time has not come. */
const MANY_LINES = MAX_LINES / 2
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 5_000
const TRY_MS = 10_000
/** Lines that wait for the server: some 20 MB. */
const MOST_LINES = 50_000
const TOO_LATE = 'the server did not take them in time.'
/** Neither older lines than that may wait, nor more of them: the server is away, or takes less than is done. */
const LONGEST_WAIT_MS = 15_000
const MANY_WAITING = MOST_LINES / 2

interface Waiting extends WireLine {
  readonly since: number
}

/** Sends one line for each request to the server, in batches, one at a time, and again under the same id until it has taken them. */
export function createRecorder({ runs, run, log, monotonic }: RecorderOptions): BatchRecorder {
  let waiting: Waiting[] = []
  /** Of the oldest line that the server has not taken, also where it is on its way. */
  let oldestSince: number | undefined
  let sending: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let isReported = false
  const over = new AbortController()
  const count = { requests: 0, refused: 0, misused: 0, redacted: 0, lost: 0 }

  const lose = (lines: number, why: string) => {
    count.lost += lines
    if (!isReported) log.warn(`requests could not be recorded: ${why}`)
    isReported = true
  }
  /** What waits now, and not what comes meanwhile: under load that would be a batch of a few lines after each reply. */
  const sendDue = async (all: boolean): Promise<void> => {
    for (let due = waiting.length; due > 0 && (all || due >= MANY_LINES) && !over.signal.aborted; ) {
      const { batch, rest } = takeBatch(waiting)
      waiting = rest
      due -= batch.length
      await deliver({ runs, run, over: over.signal, lose }, batch)
      oldestSince = waiting[0]?.since
    }
  }
  const send = (all: boolean): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    sending ??= sendDue(all).finally(() => {
      sending = undefined
      sendSoon()
    })
    return sending
  }
  const sendSoon = () => {
    if (sending !== undefined || waiting.length === 0 || over.signal.aborted) return
    if (waiting.length >= MAX_LINES) void send(false)
    else timer ??= setTimeout(() => void send(true), EVERY_MS)
  }
  return {
    record: (line: RequestLine) => {
      count.requests += 1
      count.redacted += line.redacted
      if (line.decision === 'refused' || line.decision === 'misused') count.refused += 1
      if (line.decision === 'misused') count.misused += 1
      if (over.signal.aborted || waiting.length >= MOST_LINES)
        return lose(1, 'the server does not take them.')
      const since = monotonic()
      waiting.push({ ...lineOnWire(line), since })
      oldestSince ??= since
      sendSoon()
    },
    totals: () => ({ ...count }),
    whyBehind: () =>
      waiting.length > MANY_WAITING || monotonic() - (oldestSince ?? Infinity) > LONGEST_WAIT_MS
        ? 'The server has not taken the record of what was done for too long.'
        : undefined,
    close: async (withinMs) => {
      const late = setTimeout(() => over.abort(new Error('too late')), withinMs)
      // Again for what came while the last batch was on its way.
      do await send(true)
      while (waiting.length > 0 && !over.signal.aborted)
      clearTimeout(late)
      clearTimeout(timer)
      over.abort(new Error('closed'))
      if (waiting.length > 0) lose(waiting.length, TOO_LATE)
    },
  }
}

interface Delivery extends Pick<RecorderOptions, 'runs' | 'run'> {
  readonly over: AbortSignal
  lose(lines: number, why: string): void
}

/** Tries until the server has taken or refused it, or there is no more time. */
async function deliver(
  { runs, run, over, lose }: Delivery,
  requests: RequestBatch['requests'],
): Promise<void> {
  const batch = newBatchId()
  for (let wait = FIRST_RETRY_MS; ; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
    try {
      const signal = AbortSignal.any([over, AbortSignal.timeout(TRY_MS)])
      return await runs.record(run, { batch, requests }, { signal })
    } catch (error) {
      if (over.aborted) return lose(requests.length, TOO_LATE)
      if (isFinal(error)) return lose(requests.length, error.message)
      const least = error instanceof MayflyError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0
      await pause(Math.max(least, wait * (0.5 + Math.random() / 2)), over).catch(() => {})
      if (over.aborted) return lose(requests.length, TOO_LATE)
    }
  }
}

/** Trying again does not change it. */
function isFinal(error: unknown): error is MayflyError {
  return isGone(error) || (error instanceof MayflyError && [400, 413, 422].includes(error.status))
}
