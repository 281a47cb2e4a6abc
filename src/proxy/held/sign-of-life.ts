import { MISSED_BEATS } from '../../domain/run.ts'
import { type Clocks, stopwatch } from '../../domain/stopwatch.ts'

/** What is known of the server and of the run, by how long ago it last said something. */
export interface SignOfLife {
  /** After such a silence nothing is sure. */
  readonly silentMs: number
  /** Something came over the events of the run. False: it had been silent for too long, so what came may be old. */
  heard(): boolean
  /** A new connection says what is true now. */
  connected(): void
  /** The server has answered a beat of the run that was sent so many milliseconds ago. */
  beaten(agoMs: number): void
  /** The server refuses to say anything. */
  refused(): void
  /** Whether a new request may be served. */
  isSure(): boolean
  /** Whether what is open may stay open. */
  isBeating(): boolean
}

const LONGEST_SILENCE_MS = 15_000

/** `beats`: whether `beaten` is called; otherwise the events of the run say that it lives. */
export function createSignOfLife(clocks: Clocks, heartbeatMs: number, beats: boolean): SignOfLife {
  const deadMs = MISSED_BEATS * heartbeatMs
  const silentMs = Math.min(LONGEST_SILENCE_MS, deadMs)
  let sinceHeard = stopwatch(clocks)
  let sinceBeat = stopwatch(clocks)
  let isRefused = false
  const isHeard = () => !isRefused && sinceHeard() < silentMs
  const hear = () => {
    isRefused = false
    sinceHeard = stopwatch(clocks)
    if (!beats) sinceBeat = sinceHeard
  }
  return {
    silentMs,
    heard: () => {
      const isTimely = isHeard()
      if (isTimely) hear()
      return isTimely
    },
    connected: hear,
    beaten: (agoMs) => {
      // Answers may arrive in another order than their beats.
      if (agoMs < sinceBeat()) sinceBeat = stopwatch(clocks, agoMs)
    },
    refused: () => {
      isRefused = true
    },
    isSure: () => isHeard() && sinceBeat() < deadMs,
    isBeating: () => sinceBeat() < deadMs,
  }
}
