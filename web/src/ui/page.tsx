import { type ReactNode, useEffect, useRef } from 'react'
import { useLocation } from 'wouter'
import { Button } from './button.tsx'
import { useKeys } from './keys.ts'
import { tell } from './notices.tsx'

interface PageProps {
  readonly title: string
  /** A sentence, or a count. */
  readonly subtitle?: ReactNode
  /** Controls at the right of the title. */
  readonly actions?: ReactNode
  /** Filters under the title. */
  readonly filters?: ReactNode
  readonly children: ReactNode
}

/** What belongs to the list is not there while an object takes its place. */
const OF_LIST = 'max-lg:group-has-[article]/page:hidden'

/** One room: a title, its controls, and what fills the rest of the window and scrolls by itself. */
export function Page({ title, subtitle, actions, filters, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Mayfly`
  }, [title])
  return (
    <div className="group/page grid h-full min-h-0 grid-cols-[minmax(0,1fr)] grid-rows-[auto_minmax(0,1fr)]">
      <header className="border-b border-line px-4 pt-4 pb-3">
        <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
          <div className="flex min-w-0 flex-wrap items-baseline gap-x-3">
            <h1 className="text-xl" tabIndex={-1}>
              {title}
            </h1>
            {subtitle !== undefined && <div className="text-muted">{subtitle}</div>}
          </div>
          {actions !== undefined && <div className={`flex flex-wrap gap-2 ${OF_LIST}`}>{actions}</div>}
        </div>
        {filters !== undefined && <div className={`mt-3 ${OF_LIST}`}>{filters}</div>}
      </header>
      <div className="min-h-0">{children}</div>
    </div>
  )
}

interface SplitProps {
  readonly list: ReactNode
  /** One object beside its list; on a narrow window in place of it. */
  readonly detail: ReactNode | undefined
}

/**
 * A list, and beside it the object that is open. Each has an address. The list stays as it is while one goes from object to object;
 * what belongs to an object ends with it.
 */
export function Split({ list, detail }: SplitProps) {
  const [path] = useLocation()
  const isOpen = detail !== undefined
  return (
    <div
      className={`grid h-full min-h-0 ${isOpen ? 'lg:grid-cols-[minmax(0,1fr)_clamp(460px,38%,680px)]' : ''}`}
    >
      <div className={`min-h-0 min-w-0 ${isOpen ? 'max-lg:hidden' : ''}`}>{list}</div>
      {isOpen && (
        <div key={path} className="min-h-0 min-w-0 border-line bg-surface lg:border-l">
          {detail}
        </div>
      )}
    </div>
  )
}

interface DetailProps {
  /** What it is, such as "Credential". */
  readonly kind: string
  readonly title: ReactNode
  /** The address of the list. */
  readonly back: string
  /** Why Escape does not leave now: it shows what is gone with it. */
  readonly kept?: string | undefined
  readonly actions?: ReactNode
  readonly children: ReactNode
}

/** One object. Escape goes back to its list. */
export function Detail({ kind, title, back, kept, actions, children }: DetailProps) {
  const [, go] = useLocation()
  const box = useRef<HTMLElement>(null)
  useKeys({ Escape: () => (kept === undefined ? go(back) : tell(kept)) })
  // A reader of the screen hears that something has opened; where the list is hidden, the focus would be lost.
  useEffect(() => {
    if (document.activeElement === document.body || document.activeElement === null) box.current?.focus()
  }, [])
  return (
    <article ref={box} tabIndex={-1} aria-label={kind} className="h-full overflow-y-auto outline-none">
      <header className="border-b border-line bg-surface px-5 pt-3 pb-3 md:sticky md:top-0 md:z-10">
        <div className="flex items-center justify-between gap-3">
          <p className="text-xs text-muted">{kind}</p>
          <Button look="quiet" hotkey="Esc" onClick={() => go(back)}>
            Back
          </Button>
        </div>
        <h2 className="text-lg [overflow-wrap:anywhere]">{title}</h2>
        {actions !== undefined && <div className="mt-3 flex flex-wrap gap-2">{actions}</div>}
      </header>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4 px-5 py-4">{children}</div>
    </article>
  )
}

/** A page that is read from top to bottom, and not a list. */
export function Sheet({ children }: { readonly children: ReactNode }) {
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto grid max-w-[960px] gap-6 px-4 py-6">{children}</div>
    </div>
  )
}
