import { useSyncExternalStore } from 'react'

/**
 * The second half of a login: the cookie alone opens nothing (docs/explanation/threat-model.md). It is kept per origin, so that
 * all tabs have it, and is sent in the header `Mayfly-Console`.
 */
const KEY = 'mayfly.key'
const listeners = new Set<() => void>()
let wasIn = localStorage.getItem(KEY) !== null
let isOnPurpose = false

export const readKey = (): string | null => localStorage.getItem(KEY)

export function enter(key: string): void {
  localStorage.setItem(KEY, key)
  wasIn = true
  isOnPurpose = false
  tellAll()
}

/** Forgets the login. The next view is the page to log in, at the same address. */
export function leave(): void {
  localStorage.removeItem(KEY)
  tellAll()
}

/** A person logs out here: that the session ends then is no news. */
export function expectEnd(isExpected: boolean): void {
  isOnPurpose = isExpected
}

/** Whether the session of this tab ended without its person's doing: it was ended, has expired, or another tab has logged out. */
export function hasEnded(): boolean {
  return wasIn && !isOnPurpose
}

function tellAll(): void {
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  // Another tab has logged in or out.
  addEventListener('storage', listener)
  return () => {
    listeners.delete(listener)
    removeEventListener('storage', listener)
  }
}

/** The key of this browser's login; null: nobody is logged in. */
export function useKey(): string | null {
  return useSyncExternalStore(subscribe, readKey)
}
