import type { Cuts } from '../types.ts'

/** `Cuts` of one run, with what only the room that knows the credentials does. */
export interface RunCuts extends Cuts {
  /** Nothing may be open for now: destroys what is, and what is tracked before `lift`. */
  hold(): number
  lift(): void
  /** How many are open. */
  readonly open: number
}

export function createCuts(): RunCuts {
  const open = new Map<string, Set<() => void>>()
  const ended = new Set<string>()
  let isHeld = false
  let count = 0

  const cutOpen = (credentialId: string): number => {
    const all = open.get(credentialId)
    if (all === undefined) return 0
    open.delete(credentialId)
    const { size } = all
    count -= size
    for (const destroy of all) destroySafely(destroy)
    return size
  }
  const cutAll = () => [...open.keys()].reduce((sum, id) => sum + cutOpen(id), 0)

  return {
    get open() {
      return count
    },
    track: (credentialId, destroy) => {
      if (isHeld || ended.has(credentialId)) {
        destroySafely(destroy)
        return () => {}
      }
      const all = open.get(credentialId) ?? new Set()
      open.set(credentialId, all)
      // One function may stand for several sockets.
      const entry = () => destroy()
      all.add(entry)
      count += 1
      return () => {
        if (!all.delete(entry)) return
        if (open.get(credentialId) !== all) return
        count -= 1
        if (all.size === 0) open.delete(credentialId)
      }
    },
    cut: (credentialId) => {
      ended.add(credentialId)
      return cutOpen(credentialId)
    },
    cutAll,
    hold: () => {
      isHeld = true
      return cutAll()
    },
    lift: () => {
      isHeld = false
    },
  }
}

/** One that throws must not keep the others open. */
function destroySafely(destroy: () => void): void {
  try {
    destroy()
  } catch {
    // It has been closed already.
  }
}
