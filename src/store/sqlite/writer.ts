import type { Change, Outcome } from '../engine/change.ts'
import { type Attempt, commitBatch } from './commit.ts'
import { isDiskFull } from './errors.ts'
import { type Ballast, connect, emptyJournal, type OpenFile } from './file.ts'

const RETRY_MS = 1_000
/** Failed recoveries after which the file is opened anew even if its journal cannot be emptied first. */
const PATIENCE = 5
const DISK_FULL = 'the disk is full'

export interface Submitted {
  readonly change: Change
  readonly urgent: boolean
}

/** `failed`: not acknowledged, and why. */
export type Result = Outcome | { readonly failed: string; readonly cause?: string }

/** The one connection that writes, and what is done when the disk fails under it. Lives on the writer's thread. */
export class Writer {
  readonly #file: string
  readonly #ballast: Ballast
  readonly #onTrouble: (what: string, error: unknown) => void
  #opened: OpenFile
  #recovering: NodeJS.Timeout | undefined
  #doubtful = false
  #failedRecoveries = 0
  trouble: string | undefined
  onRecovered: () => void = () => undefined

  constructor(
    file: string,
    opened: OpenFile,
    ballast: Ballast,
    onTrouble: (what: string, error: unknown) => void,
  ) {
    this.#file = file
    this.#opened = opened
    this.#ballast = ballast
    this.#onTrouble = onTrouble
    this.#begin()
  }

  /** What a failed sync of an earlier process may have left in the journal is made good before anything is added. */
  #begin(): void {
    try {
      emptyJournal(this.#opened.db)
      if (!this.#ballast.lay()) this.#enterTrouble(DISK_FULL, new Error('no room for the reserve'))
    } catch (error) {
      this.#doubt(error)
    }
  }

  /** One transaction and one sync for all; while in trouble, for what is urgent only. */
  apply(batch: readonly Submitted[]): Result[] {
    const { trouble } = this
    if (trouble === undefined) return this.#settle(batch, true)
    const urgent = this.#settle(
      batch.filter((one) => one.urgent),
      true,
    )
    return batch.map((one) => (one.urgent ? take(urgent) : { failed: trouble }))
  }

  close(): void {
    clearInterval(this.#recovering)
    if (this.#opened.db.isOpen) this.#opened.db.close()
  }

  #settle(batch: readonly Submitted[], again: boolean): Result[] {
    if (batch.length === 0) return []
    let attempts: Attempt[]
    try {
      const changes = batch.map((one) => one.change)
      attempts = commitBatch(this.#opened.db, this.#opened.applier, changes)
    } catch (error) {
      return this.#fail(error, batch, again)
    }
    if (this.trouble !== undefined) this.#keepRoom()
    return attempts.map((attempt) =>
      attempt instanceof Error ? { failed: 'a change cannot be executed', cause: attempt.message } : attempt,
    )
  }

  /** Nothing of the batch is acknowledged; what is urgent is tried once more in the room of the reserve. */
  #fail(error: unknown, batch: readonly Submitted[], again: boolean): Result[] {
    this.#doubt(error)
    const failed = { failed: troubleOf(error), cause: error instanceof Error ? error.message : String(error) }
    if (!isDiskFull(error) || !again) return batch.map(() => failed)
    const retried = this.#settle(
      batch.filter((one) => one.urgent),
      false,
    )
    return batch.map((one) => (one.urgent ? take(retried) : failed))
  }

  /** The file has failed: it is opened anew as soon as that can be done without loss. */
  #doubt(error: unknown): void {
    this.#doubtful = true
    if (isDiskFull(error)) this.#ballast.drop()
    this.#enterTrouble(troubleOf(error), error)
    try {
      this.#renew()
    } catch (cause) {
      this.#onTrouble('the database could not be opened anew', cause)
    }
  }

  /** On a full disk a journal that grows would use up the very room that is needed to empty it. */
  #keepRoom(): void {
    try {
      emptyJournal(this.#opened.db)
    } catch (error) {
      this.#onTrouble('the journal could not be emptied', error)
    }
  }

  #enterTrouble(what: string, error: unknown): void {
    this.trouble = what
    this.#recovering ??= setInterval(() => this.#recover(), RETRY_MS)
    this.#onTrouble(what, error)
  }

  /**
   * The file opened anew, with an empty journal. Until the journal can be emptied the connection stays: in its
   * view the failed commit has not happened, while a new one would read it from the journal.
   */
  #renew(): void {
    const { db } = this.#opened
    if (db.isOpen) {
      try {
        emptyJournal(db)
      } catch (error) {
        this.#failedRecoveries += 1
        if (this.#failedRecoveries < PATIENCE) throw error
      }
      db.close()
    }
    this.#opened = connect(this.#file)
    emptyJournal(this.#opened.db)
    this.#failedRecoveries = 0
    this.#doubtful = false
  }

  /** Writes for a trial, once a second, until that succeeds and the reserve is laid again. */
  #recover(): void {
    try {
      if (this.#doubtful) this.#renew()
      this.#opened.db.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('trial', '')")
      if (!this.#ballast.lay()) return
      this.trouble = undefined
      clearInterval(this.#recovering)
      this.#recovering = undefined
      this.onRecovered()
    } catch (error) {
      this.#doubtful = true
      this.#onTrouble('the database still cannot be written', error)
    }
  }
}

function take(results: Result[]): Result {
  return results.shift() ?? { failed: 'not tried' }
}

function troubleOf(error: unknown): string {
  return isDiskFull(error) ? DISK_FULL : 'the database cannot be written'
}
