import { useRef } from 'react'
import { Link } from 'wouter'
import type { Backend } from '../../../../src/client/wire.ts'
import { useNow } from '../../ui/clock.ts'
import { visible } from '../../ui/hostile.ts'
import { useKeys } from '../../ui/keys.ts'
import { Status } from '../../ui/status.tsx'
import { Name } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { endOf, useKindList } from '../kinds/use-kinds.ts'
import { byKind, reasonWord, secretDue, statesOf } from './state.ts'

interface Props {
  readonly rows: readonly Backend[]
  readonly openName: string | undefined
  readonly hrefOf: (name: string) => string
}

/** Backends by kind. J and K move from one to the next, Enter opens. */
export function Cards({ rows, openName, hrefOf }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const kinds = useKindList().data ?? []
  const move = (by: number) => {
    const links = [...(box.current?.querySelectorAll<HTMLElement>('h3 a') ?? [])]
    const at = links.indexOf(document.activeElement as HTMLElement)
    links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus()
  }
  useKeys({ J: () => move(1), K: () => move(-1) })
  return (
    <div ref={box} className="h-full overflow-y-auto px-4 pb-6">
      {byKind(rows).map(([type, group]) => {
        const kind = kinds.find((one) => one.type === type)
        const ends = kind?.revocation ?? group[0]?.revocation
        return (
          <section key={type} className="pt-5" aria-labelledby={`kind-${type}`}>
            <div className="mb-2 flex flex-wrap items-baseline gap-x-3">
              <h2 id={`kind-${type}`} className="text-base">
                {visible(kind?.title ?? type)}
              </h2>
              <span className="text-xs text-muted">
                {ends !== undefined && `a credential ${endOf(ends)}`}
              </span>
            </div>
            <ul className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,264px),1fr))] gap-3">
              {group.map((row) => (
                <Card key={row.name} row={row} isOpen={row.name === openName} href={hrefOf(row.name)} />
              ))}
            </ul>
          </section>
        )
      })}
    </div>
  )
}

interface CardProps {
  readonly row: Backend
  readonly isOpen: boolean
  readonly href: string
}

/** The whole card opens it; what is exact shows on its own hover and focus. */
function Card({ row, isOpen, href }: CardProps) {
  const states = statesOf(row, useNow(30_000))
  const isBad = states[0].look === 'bad'
  const edge = isBad ? 'border-l-bad' : states[0].look === 'wait' ? 'border-l-wait' : 'border-l-line'
  return (
    <li
      className={`relative grid content-start gap-3 rounded-sm border border-l-4 border-line ${edge} px-3 py-3 ${isOpen ? 'bg-accent-soft' : 'bg-surface hover:bg-sunken'}`}
    >
      <div className="flex items-baseline justify-between gap-3">
        <h3 className="min-w-0 text-base">
          <Link
            href={href}
            aria-current={isOpen ? 'true' : undefined}
            className="after:absolute after:inset-0 after:rounded-sm focus-visible:outline-none focus-visible:after:outline-2 focus-visible:after:outline-offset-2 focus-visible:after:outline-accent"
          >
            <Name text={row.name} />
          </Link>
        </h3>
        <Live row={row} />
      </div>
      <div className="flex flex-wrap gap-x-4 text-sm">
        {states.map(({ look, words }) => (
          <Status key={words} look={look}>
            {words}
          </Status>
        ))}
      </div>
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-1 text-xs">
        {row.revocation === 'exact' && (
          <>
            <dt className="text-muted">Last end upstream</dt>
            <dd>
              <Time at={row.last_revocation} none="none yet" />
            </dd>
            <dt className="text-muted">Last failed end</dt>
            <dd className={row.unended === undefined ? '' : 'font-semibold text-bad'}>
              <Time at={row.last_revocation_failure?.at} none="none" />
              {row.last_revocation_failure !== undefined &&
                `, ${reasonWord(row.last_revocation_failure.reason)}`}
            </dd>
          </>
        )}
        <dt className="text-muted">Mayfly’s secret</dt>
        <dd>
          <SecretAge row={row} />
        </dd>
      </dl>
    </li>
  )
}

function Live({ row: { live } }: { readonly row: Backend }) {
  return (
    <span className="whitespace-nowrap text-sm">
      <span className={live === 0 ? 'text-muted' : 'font-semibold'}>{live.toLocaleString('en')}</span>{' '}
      <span className="text-muted">live</span>
    </span>
  )
}

/** How old the secret is that Mayfly logs in with; with a rule, the bar of what is left of its time. */
export function SecretAge({ row }: { readonly row: Backend }) {
  const due = secretDue(row)
  const since = row.health?.secret_since
  if (since === undefined) return <span className="text-muted">none</span>
  if (due === null) return <Time at={since} />
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      <Time at={since} />
      <Life from={since} until={due} />
    </span>
  )
}
