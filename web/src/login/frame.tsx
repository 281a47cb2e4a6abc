import { type ReactNode, useEffect } from 'react'
import { Wordmark } from '../ui/wordmark.tsx'

interface Props {
  readonly title: string
  readonly isWide?: boolean
  readonly children: ReactNode
}

/** A page that is one question and stands alone, without the rooms. */
export function Frame({ title, isWide = false, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Mayfly`
  }, [title])
  return (
    <main className="grid min-h-full grid-cols-[minmax(0,1fr)] place-items-center p-4">
      <div
        className={`grid w-full grid-cols-[minmax(0,1fr)] gap-4 rounded-md border border-line bg-surface p-6 ${isWide ? 'max-w-[520px]' : 'max-w-[400px]'}`}
      >
        <Wordmark />
        <h1 className="text-xl">{title}</h1>
        {children}
      </div>
    </main>
  )
}
