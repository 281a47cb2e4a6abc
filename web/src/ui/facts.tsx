import type { ReactNode } from 'react'

/** What is known of one object: names and values, one in a row. */
export function Facts({ children }: { readonly children: ReactNode }) {
  return (
    <dl className="grid grid-cols-[minmax(124px,max-content)_minmax(0,1fr)] gap-x-5 gap-y-2 text-sm max-sm:grid-cols-1 max-sm:gap-y-1">
      {children}
    </dl>
  )
}

export function Fact({ name, children }: { readonly name: ReactNode; readonly children: ReactNode }) {
  return (
    <>
      <dt className="text-muted max-sm:mt-1">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]">{children}</dd>
    </>
  )
}

export function Section({
  title,
  aside,
  children,
}: {
  readonly title: string
  readonly aside?: ReactNode
  readonly children: ReactNode
}) {
  return (
    <section className="border-t border-line py-4">
      <div className="mb-2 flex flex-wrap items-baseline justify-between gap-2">
        <h3 className="text-sm">{title}</h3>
        {aside}
      </div>
      {children}
    </section>
  )
}
