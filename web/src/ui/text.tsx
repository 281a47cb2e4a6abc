import { useState } from 'react'
import { Button } from './button.tsx'
import { cut, visible } from './hostile.ts'

interface Props {
  readonly text: string
  /** Characters that are shown at first; 300 unless given. */
  readonly most?: number
}

/** Text that a stranger wrote, in full on request. Never a link, never markup (`hostile.ts`). */
export function Hostile({ text, most = 300 }: Props) {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? { text, isCut: false } : cut(text, most)
  return (
    <span className="whitespace-pre-wrap [overflow-wrap:anywhere]" dir="ltr">
      {visible(shown.text)}
      {shown.isCut && (
        <>
          {'… '}
          <Button look="link" onClick={() => setWhole(true)}>
            Show all {text.length.toLocaleString('en')} characters
          </Button>
        </>
      )}
    </span>
  )
}

/** A name or an id in a list: one line, cut by the width of its column, whole in the title. */
export function Name({ text, mono = false }: { readonly text: string; readonly mono?: boolean }) {
  const shown = visible(cut(text, 512).text)
  return (
    <span className={`block truncate ${mono ? 'font-mono text-xs' : ''}`} dir="ltr" title={shown}>
      {shown}
    </span>
  )
}
