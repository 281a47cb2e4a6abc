import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Snippet } from '../../ui/copy.tsx'
import { Mark } from '../../ui/status.tsx'
import { Name } from '../../ui/text.tsx'
import { commandLines, type Known, nextStep, type Step } from './guide.ts'
import { AddBackend, CreateAgent, TryBackend } from './guide-steps.tsx'

interface Props {
  readonly known: Known
  /** Called before anything is done here: the guide stays, although the server is not new any more. */
  readonly onAct: () => void
  readonly onClose: () => void
}

/** From nothing to a first credential: backend, agent, trial; then what to paste into a terminal. */
export function Guide({ known, onAct, onClose }: Props) {
  const [hasActed, setActed] = useState(false)
  const next = nextStep(known)
  const { backend, agent } = known
  const act = () => {
    setActed(true)
    onAct()
  }
  const step = (of: Step) => ({
    state: next === of ? ('next' as const) : known[of] == null ? ('later' as const) : ('done' as const),
    takesFocus: hasActed,
  })
  return (
    <section aria-labelledby="guide" className="rounded-md border border-line bg-surface">
      <header className="px-5 pt-4">
        <div className="flex items-start justify-between gap-4">
          <h2 id="guide" className="text-lg">
            To the first credential
          </h2>
          <Button look="quiet" className="-mr-3" onClick={onClose}>
            Close the guide
          </Button>
        </div>
        <p className="text-muted">
          {next === undefined
            ? 'All three steps are done. What follows is for a terminal.'
            : 'Three steps, and none of them needs a terminal.'}
        </p>
      </header>
      <ol className="mt-3">
        <GuideStep {...step('backend')} number={1} title="A backend" result={backend}>
          <AddBackend onAct={act} />
        </GuideStep>
        <GuideStep {...step('agent')} number={2} title="An agent" result={agent} isKept>
          <CreateAgent backend={backend ?? undefined} isDone={agent != null} onAct={act} />
        </GuideStep>
        <GuideStep {...step('credential')} number={3} title="A first credential" result={undefined} isKept>
          <TryBackend backend={backend ?? undefined} isNext={next === 'credential'} onAct={act} />
        </GuideStep>
      </ol>
      {next === undefined && backend != null && <CommandLines backend={backend} />}
    </section>
  )
}

interface StepProps {
  readonly state: 'done' | 'next' | 'later'
  readonly number: number
  readonly title: string
  /** The name of what there is. */
  readonly result: string | null | undefined
  /** What it shows stays when it is done, such as secrets. */
  readonly isKept?: boolean
  /** Once something was done here, the next step takes the focus that its form has lost. */
  readonly takesFocus: boolean
  readonly children: ReactNode
}

const LOOKS = { done: 'ok', next: 'wait', later: 'off' } as const
const WORDS = { done: 'done', next: 'next', later: 'later' } as const

function GuideStep({ state, number, title, result, isKept = false, takesFocus, children }: StepProps) {
  const box = useRef<HTMLLIElement>(null)
  const isNext = state === 'next'
  useEffect(() => {
    if (isNext && takesFocus) box.current?.focus()
  }, [isNext, takesFocus])
  return (
    <li
      ref={box}
      tabIndex={-1}
      aria-current={isNext ? 'step' : undefined}
      className="grid grid-cols-[16px_minmax(0,1fr)] gap-x-3 border-t border-line px-5 py-4 outline-none"
    >
      <Mark look={LOOKS[state]} />
      <div className="grid gap-3">
        <div className="flex flex-wrap items-baseline gap-x-3">
          <h3 className={`text-base ${state === 'later' ? 'text-muted' : ''}`}>
            {number}. {title}
          </h3>
          <span className="text-sm text-muted">{WORDS[state]}</span>
          {result != null && (
            <span className="min-w-0 font-medium">
              <Name text={result} />
            </span>
          )}
        </div>
        {(isNext || (isKept && state === 'done')) && children}
      </div>
    </li>
  )
}

function CommandLines({ backend }: { readonly backend: string }) {
  return (
    <div className="grid gap-3 border-t border-line px-5 py-4">
      <h3 className="text-base">Now from a terminal</h3>
      <ul className="grid gap-3">
        {commandLines(location.origin, backend).map(({ what, text }) => (
          <li key={text} className="grid gap-1">
            <p className="text-sm text-muted first-letter:uppercase">{what}:</p>
            <Snippet text={text} what="the command" />
          </li>
        ))}
      </ul>
    </div>
  )
}
