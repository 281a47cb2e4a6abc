import type { Transform } from 'node:stream'

/** Replaces secrets in what comes back, by a mask of the same length. One for each reply, or one for several: `count` adds up. */
export interface Mask {
  /** A value of latin1. */
  header(value: string): string
  /** As in `rawHeaders`: names and values in turn. Values only. */
  headers(raw: readonly string[]): string[]
  /** For one body. It holds back only bytes that could be the beginning of a secret. */
  stream(): Transform
  open(): BodyMask
  /** How often a secret was masked. */
  readonly count: number
}

export interface BodyMask {
  write(chunk: Buffer): Buffer
  end(): Buffer
}

export interface MaskOf {
  /** For one reply. */
  mask(): Mask
}

/** Once for each `Live`: the tables are shared by all its replies. */
export function createMasks(_secrets: Iterable<string>): MaskOf {
  throw new Error('not built')
}

/** Whether bodies of this `Content-Type` are searched. Those without one are. */
export function isText(_contentType: string | undefined): boolean {
  return true
}
