import type { ComponentProps } from 'react'
import { Link } from 'wouter'

const LOOKS = {
  plain: 'border border-edge/60 bg-surface text-ink hover:bg-sunken',
  primary: 'border border-transparent bg-accent text-on-accent hover:opacity-90',
  danger: 'border border-bad/70 bg-surface text-bad hover:bg-bad-soft',
  quiet: 'border border-transparent text-muted hover:bg-sunken hover:text-ink',
  link: 'text-accent underline underline-offset-2 decoration-accent/40 hover:decoration-accent',
} as const

const SIZE = 'inline-flex min-h-8 items-center gap-2 rounded-sm px-3 text-sm font-medium'
/** For a link that looks like a button. */
export const looksLike = (look: Exclude<keyof typeof LOOKS, 'link'>): string => `${SIZE} ${LOOKS[look]}`

interface Props extends ComponentProps<'button'> {
  readonly look?: keyof typeof LOOKS
  /** The key that does the same, shown beside the label. */
  readonly hotkey?: string
  /** Why it cannot be used now: it is shown disabled, with this as its reason. */
  readonly refused?: string | undefined
}

export function Button({
  look = 'plain',
  hotkey,
  refused,
  className = '',
  children,
  disabled,
  ...rest
}: Props) {
  const isOff = disabled === true || refused !== undefined
  const size = look === 'link' ? '' : SIZE
  return (
    <button
      type="button"
      {...rest}
      // A button that is off stays in the order of focus, so that its reason can be read.
      aria-disabled={isOff || undefined}
      onClick={isOff ? (event) => event.preventDefault() : rest.onClick}
      title={refused ?? rest.title}
      className={`${size} whitespace-nowrap ${LOOKS[look]} ${isOff ? 'cursor-not-allowed opacity-55' : ''} ${className}`}
    >
      {children}
      {refused !== undefined && <span className="sr-only">({refused})</span>}
      {hotkey !== undefined && (
        <span className="inline-flex max-md:hidden">
          <Key name={hotkey} />
        </span>
      )}
    </button>
  )
}

/** A link that stands among buttons. */
export function ButtonLink({ href, children }: { readonly href: string; readonly children: string }) {
  return (
    <Link href={href} className={looksLike('plain')}>
      {children}
    </Link>
  )
}

/** A key of the keyboard. For eyes only: what it does has a name beside it. */
export function Key({ name }: { readonly name: string }) {
  return (
    <span
      aria-hidden="true"
      className="rounded-sm border border-current/30 px-1 font-mono text-[11px] leading-4"
    >
      {name}
    </span>
  )
}
