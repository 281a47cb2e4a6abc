import { paths, ROOT } from '../paths.ts'

/** What this tab does at a provider of single sign-on. It is read once, when the browser is back. */
export interface Errand {
  /** As the page names it. */
  readonly provider: string
  /** The address to go to after a login; undefined: a confirmation, and the page that asked for it waits in another tab. */
  readonly goal: string | undefined
}

const KEY = 'mayfly.sso'

/** Leaves for the provider. */
export function leaveFor(url: string, errand: Errand): void {
  sessionStorage.setItem(KEY, JSON.stringify(errand))
  location.assign(url)
}

/** Undefined in a tab that has not left for a provider. */
export function takeErrand(): Errand | undefined {
  const text = sessionStorage.getItem(KEY)
  sessionStorage.removeItem(KEY)
  if (text === null) return undefined
  const { provider, goal } = JSON.parse(text) as Errand
  return { provider, goal: goal === undefined ? undefined : ownPath(goal) }
}

/** The address that is open, or that was asked for, if it is one of the console; otherwise the overview. */
export function ownPath(text: string, origin = location.origin): string {
  const url = URL.parse(text, origin)
  const isOwn = url?.origin === origin && (url.pathname === ROOT || url.pathname.startsWith(`${ROOT}/`))
  return isOwn ? url.pathname + url.search : paths.overview()
}

/**
 * What the provider sent the browser back with, as it came; undefined if this is no way back. The address does not keep it: it is
 * good for a login.
 */
export function takeAnswer(): string | undefined {
  if (location.pathname !== paths.sso()) return undefined
  const search = location.search.slice(1)
  const names = new URLSearchParams(search)
  if (!names.has('code') && !names.has('error') && !names.has('state')) return undefined
  history.replaceState(null, '', location.pathname)
  return search
}
