import { useEffect, useState } from 'react'
import { Button } from './button.tsx'

interface Props {
  readonly text: string
  /** What is copied, for the name of the control: "Copy the id". */
  readonly what: string
  readonly label?: string
}

export function Copy({ text, what, label = 'Copy' }: Props) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return undefined
    const timer = setTimeout(() => setState('idle'), 2_000)
    return () => clearTimeout(timer)
  }, [state])
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setState('copied'),
      () => setState('failed'),
    )
  return (
    <Button look="quiet" className="min-h-6! px-1.5! text-xs" aria-label={`Copy ${what}`} onClick={copy}>
      <span aria-live="polite">
        {state === 'copied' ? 'Copied' : state === 'failed' ? 'Select it, then copy' : label}
      </span>
    </Button>
  )
}

/** Something to paste elsewhere, with its button. */
export function Snippet({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div className="flex items-start gap-2 rounded-sm border border-line bg-sunken py-1.5 pr-1.5 pl-3">
      <code className="grow whitespace-pre-wrap break-all text-xs leading-5">{text}</code>
      <Copy text={text} what={what} />
    </div>
  )
}
