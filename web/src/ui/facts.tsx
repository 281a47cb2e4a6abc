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

interface SectionProps {
  readonly title: string
  readonly aside?: ReactNode
  /** A part of the page itself, and not of an object that is open on it. */
  readonly isOfPage?: boolean
  readonly children: ReactNode
}

export function Section({ title, aside, isOfPage = false, children }: SectionProps) {
  const Heading = isOfPage ? 'h2' : 'h3'
  return (
    <section className="border-t border-line py-4">
      <div className="mb-2 flex flex-wrap items-baseline justify-between gap-2">
        <Heading className="text-sm">{title}</Heading>
        {aside}
      </div>
      {children}
    </section>
  )
}
