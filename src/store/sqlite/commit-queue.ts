import type { Worker } from 'node:worker_threads'
import { installation } from '../../installation.ts'
import type { Change, Outcome } from '../engine/change.ts'
import { createChanges } from '../engine/changes.ts'
import type { CommitOptions, CommitStats } from '../engine/engine.ts'
import { freshener } from '../engine/fresh.ts'
import { requireStorable } from '../engine/run.ts'
import { StoreError, StoreRefused } from '../errors.ts'
import type { Message, Request } from './worker.ts'
import type { Result } from './writer.ts'

const MAX_BATCH = 256
/** Batches that the writer may have: the one it is writing, and the one it continues with. */
const MAX_SENT = 2
/** This many changes are sent at once; fewer wait until the event loop comes round, or until the writer is done. */
const WORTH_SENDING = 32
/** Changes that may wait before new ones are refused. */
const MAX_QUEUE = 4_096
const WRITER_ENDED = 'the writer thread ended; restart Mayfly'

export interface CommitQueueOptions {
  readonly directory: string
  readonly file: string
  readonly onTrouble: (what: string, error: unknown) => void
}

interface Waiting {
  change: Change
  readonly urgent: boolean
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

interface Batch {
  readonly changes: readonly Waiting[]
  readonly bulk: boolean
  readonly sentAt: number
}

/**
 * The main thread's side of writing. A change waits in the queue, goes to the writer's thread in a batch, and is
 * acknowledged when the writer has committed that batch. The writer gets the next batch before it finishes one, so
 * that neither thread waits while there is work for both.
 */
export class CommitQueue {
  readonly stats: CommitStats = { commits: 0, changes: 0, largestBatch: 0 }
  /** Resolves with the time of the newest audit entry, in ms. */
  readonly opened: Promise<number>
  generation = 0
  readonly changes = createChanges()
  trouble: string | undefined
  /** Called before anything in the file may change. */
  onBeforeChange: () => void = () => undefined
  /** Epoch ms on the store's clock. */
  now: () => number = Date.now
  readonly #onTrouble: CommitQueueOptions['onTrouble']
  readonly #worker: Worker
  readonly #waiting: Waiting[] = []
  readonly #waitingBulk: Waiting[] = []
  readonly #sent: Batch[] = []
  readonly #ended = Promise.withResolvers<void>()
  #isScheduled = false
  #lastWasBulk = false
  #isClosing = false

  constructor({ directory, file, onTrouble }: CommitQueueOptions) {
    this.#onTrouble = onTrouble
    this.#worker = installation.startWriter({ directory, file })
    const opened = Promise.withResolvers<number>()
    this.opened = opened.promise
    this.#worker.on('message', (message: Message) => this.#receive(message, opened))
    this.#worker.on('error', (error) => this.#writerEnded(error))
    this.#worker.on('exit', () => {
      const error = new Error(WRITER_ENDED)
      opened.reject(error)
      this.#writerEnded(error)
    })
  }

  /** No batch is with the writer, and it is not repairing the file either. */
  isQuiet(): boolean {
    return this.#sent.length === 0 && this.trouble === undefined && !this.#isClosing
  }

  /** When the oldest batch was sent that the writer has not answered yet. */
  sentSince(): number {
    return this.#sent[0]?.sentAt ?? Number.POSITIVE_INFINITY
  }

  // Queue.

  async commit(change: Change, options: CommitOptions = {}): Promise<Outcome> {
    requireStorable(change)
    if (this.#isClosing) throw new StoreError('the store is closed')
    const queue = options.bulk === true ? this.#waitingBulk : this.#waiting
    if (queue.length >= MAX_QUEUE) throw new StoreError('too many changes are waiting')
    return new Promise((resolve, reject) => {
      queue.push({ change, urgent: options.urgent ?? false, resolve, reject })
      this.#schedule()
    })
  }

  /** Commits the queued changes, then releases the file. */
  async close(): Promise<void> {
    if (!this.#isClosing) {
      this.#isClosing = true
      this.#schedule()
    }
    await this.#ended.promise
  }

  // Batch and write.

  #schedule(): void {
    if (this.#waiting.length >= WORTH_SENDING) this.#sendBatch()
    else if (!this.#isScheduled && this.#sent.length === 0) {
      this.#isScheduled = true
      setImmediate(() => {
        this.#isScheduled = false
        this.#sendBatch()
      })
    }
  }

  #sendBatch(): void {
    if (this.#sent.length >= MAX_SENT) return
    this.onBeforeChange()
    const batch = this.#nextBatch()
    if (batch.changes.length > 0) {
      this.#sent.push(batch)
      // A string crosses between threads faster than a structured clone of the objects.
      this.#post({
        batch: JSON.stringify(batch.changes.map(({ change, urgent }) => ({ change, urgent }))),
        bulk: batch.bulk,
      })
    } else if (this.#isClosing && this.#sent.length === 0) this.#post({})
  }

  /** Bulk changes go one at a time and alternate with batches of the others, so no request waits for two of them. */
  #nextBatch(): Batch {
    const bulk =
      this.#waitingBulk.length > 0 &&
      !this.#sent.some((batch) => batch.bulk) &&
      (this.#waiting.length === 0 || !this.#lastWasBulk)
    this.#lastWasBulk = bulk
    const changes = bulk ? this.#waitingBulk.splice(0, 1) : this.#waiting.splice(0, MAX_BATCH)
    const sentAt = this.now()
    const fresh = freshener(sentAt)
    for (const one of changes) one.change = fresh(one.change)
    return { changes, bulk, sentAt }
  }

  #post(request: Request): void {
    this.#worker.postMessage(request)
  }

  #receive(message: Message, opened: PromiseWithResolvers<number>): void {
    switch (message.kind) {
      case 'open':
        this.trouble = message.trouble
        opened.resolve(message.newestAt)
        return
      case 'refused':
        this.#isClosing = true
        opened.reject(new StoreRefused(message.message))
        return
      case 'trouble':
        this.trouble = message.trouble
        if (message.trouble !== undefined) this.onBeforeChange()
        this.#onTrouble(message.what, message.cause === undefined ? undefined : new Error(message.cause))
        return
      case 'done':
        this.trouble = message.trouble
        this.#acknowledge(message.results)
        return
      case 'closed':
        this.#ended.resolve()
        return
      default: {
        const never: never = message
        throw new Error(`unknown message ${String(never)}`)
      }
    }
  }

  // Acknowledge.

  #acknowledge(results: readonly Result[]): void {
    const changes = this.#sent.shift()?.changes ?? []
    this.stats.commits += 1
    this.stats.changes += changes.length
    this.stats.largestBatch = Math.max(this.stats.largestBatch, changes.length)
    // Raise the generation before resolving, so that no caller reads stale data.
    for (const [index, { change }] of changes.entries()) {
      if (isKept(results[index])) this.#raiseGeneration(change)
    }
    if (this.#waiting.length + this.#waitingBulk.length > 0 || this.#isClosing) this.#sendBatch()
    for (const [index, one] of changes.entries()) settle(one, results[index])
  }

  #raiseGeneration(change: Change): void {
    for (const step of change) {
      if (step.op !== 'invalidate') continue
      this.generation += 1
      this.changes.record(this.generation, step.topic)
    }
  }

  /** Without its thread the store cannot write: fails every change that was sent or waits. */
  #writerEnded(error: Error): void {
    const sent = this.#sent.splice(0).flatMap(({ changes }) => changes)
    const lost = [...sent, ...this.#waiting.splice(0), ...this.#waitingBulk.splice(0)]
    const isExpected = this.#isClosing && lost.length === 0
    if (!isExpected) {
      this.trouble = WRITER_ENDED
      this.#onTrouble(WRITER_ENDED, error)
      for (const one of lost) one.reject(new StoreError(WRITER_ENDED, { cause: error }))
      this.#isClosing = true
    }
    this.#ended.resolve()
  }
}

function settle(one: Waiting, result: Result | undefined): void {
  if (result === undefined) one.reject(new StoreError('the writer did not answer'))
  else if ('bug' in result) one.reject(new Error(`SQLite cannot execute a change: ${result.bug}`))
  else if ('failed' in result) one.reject(new StoreError(result.failed, { cause: result.cause }))
  else one.resolve(result)
}

function isKept(result: Result | undefined): boolean {
  return result !== undefined && 'done' in result && result.done
}
