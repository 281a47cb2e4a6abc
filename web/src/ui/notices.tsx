import { useSyncExternalStore } from 'react'
import { failureOf } from '../api/failure.ts'
import { Button } from './button.tsx'

interface Notice {
  readonly id: number
  readonly text: string
  readonly isBad: boolean
}
let notices: readonly Notice[] = []
let last = 0
const listeners = new Set<() => void>()

function set(next: readonly Notice[]): void {
  notices = next
  for (const listener of listeners) listener()
}
const close = (id: number) => set(notices.filter((one) => one.id !== id))

/** Says that something is done, for some seconds. */
export function tell(text: string): void {
  add(text, false)
}

/** Says what failed outside a form. It stays until it is closed. */
export function tellFailure(error: unknown): void {
  const { message, requestId } = failureOf(error)
  add(requestId === undefined ? message : `${message} (${requestId})`, true)
}

function add(text: string, isBad: boolean): void {
  last += 1
  const id = last
  set([...notices.slice(-3), { id, text, isBad }])
  if (!isBad) setTimeout(() => close(id), 6_000)
}

export function Notices() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => notices,
  )
  return (
    <div
      role="status"
      aria-live="polite"
      className="fixed right-4 bottom-4 z-50 grid w-[min(420px,calc(100vw-32px))] gap-2"
    >
      {shown.map(({ id, text, isBad }) => (
        <div
          key={id}
          className={`flex items-start justify-between gap-3 rounded-sm border-l-4 bg-surface px-3 py-2 shadow-float ${isBad ? 'border-bad' : 'border-accent'}`}
        >
          <span className="[overflow-wrap:anywhere]">{text}</span>
          <Button
            look="quiet"
            className="min-h-6! px-1.5!"
            aria-label="Close this notice"
            onClick={() => close(id)}
          >
            ✕
          </Button>
        </div>
      ))}
    </div>
  )
}
