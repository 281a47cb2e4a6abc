import { focusManager } from '@tanstack/react-query'
import { useEffect } from 'react'

/**
 * What a page asks for by itself counts as use of its session, which ends after 30 minutes without. A page that nobody has touched
 * for so long asks for nothing any more, so that a forgotten screen does not stay logged in.
 */
const IDLE_MS = 30 * 60_000
const SIGNS = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'focus'] as const
let touchedAt = Date.now()

export const isForgotten = (): boolean => Date.now() - touchedAt > IDLE_MS

/** `onReturn`: somebody is there again. */
export function useIdle(onReturn: () => void): void {
  useEffect(() => {
    const touch = () => {
      const wasForgotten = isForgotten()
      touchedAt = Date.now()
      if (!wasForgotten) return
      focusManager.setFocused(undefined)
      onReturn()
    }
    // Queries that repeat themselves pause while the page counts as out of sight.
    const timer = setInterval(() => isForgotten() && focusManager.setFocused(false), 60_000)
    for (const sign of SIGNS) addEventListener(sign, touch, { passive: true, capture: true })
    return () => {
      clearInterval(timer)
      for (const sign of SIGNS) removeEventListener(sign, touch, { capture: true })
    }
  }, [onReturn])
}
