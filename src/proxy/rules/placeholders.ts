import { createNeedles, type Needles } from '../../domain/needles.ts'
import { formsOf } from '../../domain/secret-forms.ts'
import type { Held } from '../types.ts'
import type { Placeholder } from './asked.ts'
import { unescapePercent } from './target.ts'

/** Finds placeholders as they are, in base64, and URL- or JSON-escaped. */
export interface PlaceholderSearch {
  /** All that stand in a text of latin1, each once. */
  inText(text: string): readonly Placeholder[]
  /** The one whose value this is. */
  named(value: string): Placeholder | undefined
  /** For one body; memory is bounded by the longest placeholder. */
  open(): BodySearch
}

export interface BodySearch {
  /** The first placeholder that ends in this chunk; it may have begun in those before. */
  push(chunk: Uint8Array): Placeholder | undefined
}

const NONE: readonly Placeholder[] = []

export function createPlaceholderSearch(held: readonly Held[]): PlaceholderSearch {
  const byValue = placeholdersOf(held)
  const needles = createNeedles(
    [...byValue].flatMap(([value, placeholder]) =>
      formsOf(value).map(({ bytes }) => ({ bytes, of: placeholder })),
    ),
  )
  return {
    inText: (text) => findAll(needles, text),
    named: (value) => byValue.get(value),
    open: () => openSearch(needles),
  }
}

function placeholdersOf(helds: readonly Held[]): Map<string, Placeholder> {
  const found = new Map<string, Placeholder>()
  for (const held of helds) {
    const fields = Map.groupBy(held.placeholders, ([, value]) => value)
    for (const [value, entries] of fields) {
      const names = entries.map(([field]) => field)
      const shown = names.find((name) => name !== '')
      found.set(value, {
        held,
        fields: names,
        name: shown === undefined ? held.name : `${held.name}.${shown}`,
      })
    }
  }
  return found
}

function findAll(needles: Needles<Placeholder>, text: string): readonly Placeholder[] {
  const decoded = unescapePercent(text)
  const unescaped = unescapeJson(text)
  let found = findIn(needles, text, NONE)
  if (decoded !== text) found = findIn(needles, decoded, found)
  return unescaped === text ? found : findIn(needles, unescaped, found)
}

function findIn(needles: Needles<Placeholder>, text: string, before: readonly Placeholder[]) {
  const bytes = Buffer.from(text, 'latin1')
  let found = before
  for (let hit = needles.find(bytes, 0); hit !== undefined; hit = needles.find(bytes, hit.at + hit.length)) {
    if (!found.includes(hit.of)) found = [...found, hit.of]
  }
  return found
}

function unescapeJson(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(/\\(?:u00([0-9A-Fa-f]{2})|(\/))/g, (_, hex: string | undefined) =>
    hex === undefined ? '/' : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

function openSearch(needles: Needles<Placeholder>): BodySearch {
  let tail: Uint8Array = new Uint8Array(0)
  const keep = Math.max(0, needles.longest - 1)
  return {
    push(chunk) {
      // What begins before the chunk ends within so many bytes of it.
      const across = Buffer.concat([tail, chunk.subarray(0, keep)])
      const hit = (tail.length > 0 ? needles.find(across, 0) : undefined) ?? needles.find(chunk, 0)
      tail = chunk.length >= keep ? Buffer.from(chunk.subarray(chunk.length - keep)) : lastOf(across, keep)
      return hit?.of
    },
  }
}

function lastOf(bytes: Buffer, length: number): Uint8Array {
  return bytes.subarray(Math.max(0, bytes.length - length))
}
