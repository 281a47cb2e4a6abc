import { type ReactNode, useEffect, useRef } from 'react'

/** For `kept` of a detail that shows it. */
export const SHOWN_ONCE = 'This is shown once. Choose Done when you have copied it.'

interface Props {
  /** What it is: "The secrets of ci-build". */
  readonly title: string
  readonly children: ReactNode
}

/** What the server shows once. It is there until one leaves, and nowhere else: not in the cache, the address or the storage. */
export function ShownOnce({ title, children }: Props) {
  const box = useRef<HTMLElement>(null)
  // It appears at the top of what may be scrolled, and is what one reads next.
  useEffect(() => {
    box.current?.scrollIntoView({ block: 'start' })
    box.current?.focus({ preventScroll: true })
  }, [])
  return (
    <section
      ref={box}
      tabIndex={-1}
      aria-label={title}
      className="grid min-w-0 scroll-mt-48 gap-3 rounded-md border border-accent/50 bg-accent-soft p-4 outline-none"
    >
      <div>
        <h3 className="text-base">{title}</h3>
        <p className="text-sm text-muted">
          Copy what you need now: it is shown this once, and gone when you leave this page.
        </p>
      </div>
      {children}
    </section>
  )
}
