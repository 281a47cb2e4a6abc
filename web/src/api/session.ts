import { useSyncExternalStore } from 'react'

/**
 * The second half of a login: the cookie alone opens nothing (docs/explanation/threat-model.md). It is kept per origin, so that
 * all tabs have it, and is sent in the header `Mayfly-Console`.
 */
const KEY = 'mayfly.key'
const listeners = new Set<() => void>()

export const readKey = (): string | null => localStorage.getItem(KEY)

export function enter(key: string): void {
  localStorage.setItem(KEY, key)
  tellAll()
}

/** Forgets the login. The next view is the page to log in, at the same address. */
export function leave(): void {
  localStorage.removeItem(KEY)
  tellAll()
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
