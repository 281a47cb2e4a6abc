import type { Change, Outcome } from '../engine/change.ts'
import { isDiskFull } from './errors.ts'
import { connect, emptyJournal, giveBackPages, type OpenFile } from './file.ts'
import type { Reserve } from './reserve.ts'

const RECOVER_EVERY_MS = 1_000
/** After this many failures to empty the journal, the file is reopened with the journal as it is. */
const MAX_FAILED_CHECKPOINTS = 5
const DISK_FULL = 'the disk is full'
const CANNOT_WRITE = 'the database cannot be written'

export interface Submitted {
  readonly change: Change
  readonly urgent: boolean
}

interface Failure {
  readonly failed: string
  readonly cause?: string
}

/** `failed`: not acknowledged, and why. `bug`: the database can never execute this change, and says why. */
export type Result = Outcome | Failure | { readonly bug: string }

/**
 * The only connection that writes. It runs on the writer's thread. `apply` commits a batch. When a commit fails, the
 * writer is in trouble: it accepts only urgent changes, and it repairs the file until a trial write succeeds.
 */
export class Writer {
  readonly #file: string
  readonly #reserve: Reserve
  readonly #onTrouble: (what: string, error: unknown) => void
  #opened: OpenFile
  /** A commit failed, so the journal may hold changes that must not be read back. */
  #mustReopen = false
  #failedCheckpoints = 0
  #recovering: NodeJS.Timeout | undefined
  trouble: string | undefined
  onRecovered: () => void = () => undefined

  constructor(
    file: string,
    opened: OpenFile,
    reserve: Reserve,
    onTrouble: (what: string, error: unknown) => void,
  ) {
    this.#file = file
    this.#opened = opened
    this.#reserve = reserve
    this.#onTrouble = onTrouble
    try {
      // An earlier process may have ended after a failed sync: settle its journal before adding to it.
      emptyJournal(opened.db)
      if (!reserve.hold()) this.#enterTrouble(DISK_FULL, new Error('there is no room for the reserve'))
    } catch (error) {
      this.#startRecovery(error)
    }
  }

  /** The result of each change of the batch, in order. */
  apply(batch: readonly Submitted[]): Result[] {
    const { trouble } = this
    if (trouble === undefined) return this.#commit(batch)
    return mergeResults(batch, this.#commit(batch.filter(isUrgent)), { failed: trouble })
  }

  /** On a full disk, the journal that this needs would take the room of urgent changes. */
  giveBackPages(): void {
    if (this.trouble !== undefined) return
    try {
      giveBackPages(this.#opened.db)
    } catch (error) {
      this.#startRecovery(error)
    }
  }

  close(): void {
    clearInterval(this.#recovering)
    if (this.#opened.db.isOpen) this.#opened.db.close()
  }

  /** One transaction and one sync. If it fails, no change of the batch is acknowledged. */
  #commit(batch: readonly Submitted[], isRetry = false): Result[] {
    if (batch.length === 0) return []
    try {
      const attempts = this.#opened.applier.commit(batch.map(({ change }) => change))
      if (this.trouble !== undefined) this.#saveRoom()
      return attempts.map((attempt) => (attempt instanceof Error ? { bug: attempt.message } : attempt))
    } catch (error) {
      this.#startRecovery(error)
      // Recovery gave up the reserve: urgent changes now have room.
      const urgent = isDiskFull(error) && !isRetry ? this.#commit(batch.filter(isUrgent), true) : []
      return mergeResults(batch, urgent, { failed: reasonOf(error), cause: messageOf(error) })
    }
  }

  /** On a full disk a growing journal would use up the room that is needed to empty it. */
  #saveRoom(): void {
    try {
      emptyJournal(this.#opened.db)
    } catch (error) {
      this.#onTrouble('the journal could not be emptied', error)
    }
  }

  // Recovery after a failed commit.

  #startRecovery(error: unknown): void {
    this.#mustReopen = true
    if (isDiskFull(error)) this.#reserve.giveUp()
    this.#enterTrouble(reasonOf(error), error)
    try {
      this.#reopen()
    } catch (cause) {
      this.#onTrouble('the database could not be reopened', cause)
    }
  }

  #enterTrouble(what: string, error: unknown): void {
    this.trouble = what
    this.#recovering ??= setInterval(() => this.#recover(), RECOVER_EVERY_MS)
    this.#onTrouble(what, error)
  }

  /** Ends the trouble once the file is sound, a trial write succeeds and the reserve is held again. */
  #recover(): void {
    try {
      if (this.#mustReopen) this.#reopen()
      this.#opened.db.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('trial', '')")
      if (!this.#reserve.hold()) return
      this.trouble = undefined
      clearInterval(this.#recovering)
      this.#recovering = undefined
      this.onRecovered()
    } catch (error) {
      this.#mustReopen = true
      this.#onTrouble('the database still cannot be written', error)
    }
  }

  /**
   * Reopens the file with an empty journal. Until the journal can be emptied, the old connection stays: it does not
   * see the failed commit, whereas a new one would read it from the journal.
   */
  #reopen(): void {
    const { db } = this.#opened
    if (db.isOpen) {
      try {
        emptyJournal(db)
      } catch (error) {
        this.#failedCheckpoints += 1
        if (this.#failedCheckpoints < MAX_FAILED_CHECKPOINTS) throw error
      }
      db.close()
    }
    this.#opened = connect(this.#file)
    emptyJournal(this.#opened.db)
    this.#failedCheckpoints = 0
    this.#mustReopen = false
  }
}

function isUrgent({ urgent }: Submitted): boolean {
  return urgent
}

/** The results of the urgent changes in their places, and `failure` everywhere else. */
function mergeResults(batch: readonly Submitted[], urgent: readonly Result[], failure: Failure): Result[] {
  const results = urgent.values()
  return batch.map((one) => (one.urgent ? results.next().value : undefined) ?? failure)
}

function reasonOf(error: unknown): string {
  return isDiskFull(error) ? DISK_FULL : CANNOT_WRITE
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
