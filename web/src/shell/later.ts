import { type ComponentType, useEffect, useState } from 'react'

/** A component whose code is loaded when it is first needed. */
export interface Later {
  /** Undefined while its code is not here. */
  readonly view: ComponentType | undefined
  /** Loads it, once. Rejects if it cannot be loaded; then the next call tries again. */
  load(): Promise<void>
}

/**
 * In place of React's `lazy`: what waits behind `Suspense` is shown 300 ms after its fallback at the earliest, however soon it is there,
 * and reads nothing before.
 */
export function later(find: () => Promise<ComponentType>): Later {
  let view: ComponentType | undefined
  let loading: Promise<void> | undefined
  return {
    get view() {
      return view
    },
    load() {
      loading ??= find().then(
        (found) => {
          view = found
        },
        (error: unknown) => {
          loading = undefined
          throw error
        },
      )
      return loading
    },
  }
}

/** The component as soon as it is there. Throws in the render what kept it from being loaded. */
export function useLater(one: Later): ComponentType | undefined {
  const [loaded, setLoaded] = useState<{
    readonly one: Later
    readonly failure?: { readonly error: unknown }
  }>()
  useEffect(() => {
    if (one.view !== undefined) return undefined
    let isGone = false
    const settle = (failure?: { readonly error: unknown }) => {
      if (!isGone) setLoaded(failure === undefined ? { one } : { one, failure })
    }
    one.load().then(
      () => settle(),
      (error: unknown) => settle({ error }),
    )
    return () => {
      isGone = true
    }
  }, [one])
  if (loaded?.one === one && loaded.failure !== undefined) throw loaded.failure.error
  return one.view
}
