import { useEffect, useRef, useSyncExternalStore } from 'react'

/** Something that the palette offers: to go somewhere, or to act on what is open. */
export interface Entry {
  readonly name: string
  /** What else finds it. */
  readonly words?: string
  readonly hotkey?: string
  /** Where it stands in the palette. */
  readonly group: 'Here' | 'Go to' | 'Find' | 'View'
  readonly run: () => void
  readonly refused?: string | undefined
}

let version = 0
const sources = new Set<() => readonly Entry[]>()
const listeners = new Set<() => void>()
function changed(): void {
  version += 1
  for (const listener of listeners) listener()
}

/** Adds what can be done on this page to the palette, as long as the page is there. */
export function useEntries(entries: readonly Entry[]): void {
  const current = useRef(entries)
  useEffect(() => {
    current.current = entries
  })
  useEffect(() => {
    const source = () => current.current
    sources.add(source)
    changed()
    return () => {
      sources.delete(source)
      changed()
    }
  }, [])
}

export function useAllEntries(): readonly Entry[] {
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => version,
  )
  return [...sources].reverse().flatMap((source) => source())
}
