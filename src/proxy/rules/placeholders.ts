import type { Held } from '../types.ts'
import type { Placeholder } from './asked.ts'

/** Finds placeholders as they are, in base64, and URL- or JSON-escaped. */
export interface PlaceholderSearch {
  /** All that stand in a text of latin1, each once. */
  inText(text: string): readonly Placeholder[]
  /** For one body; memory is bounded by the longest placeholder. */
  open(): BodySearch
}

export interface BodySearch {
  /** The first placeholder that ends in this chunk, or has begun in those before. */
  push(chunk: Uint8Array): Placeholder | undefined
}

export function createPlaceholderSearch(_held: readonly Held[]): PlaceholderSearch {
  return { inText: () => [], open: () => ({ push: () => undefined }) }
}
