import { Dialog as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { useKeys } from './keys.ts'

interface Props {
  readonly title: string
  /** What will happen, in a sentence. */
  readonly description?: ReactNode
  readonly children: ReactNode
  readonly onClose: () => void
  readonly isWide?: boolean
  /** It shows what is gone with it: only its controls close it. */
  readonly isKept?: boolean
}

/** A modal dialog, which is there as long as it is drawn. Escape and a click beside it close it. */
export function Dialog(props: Props) {
  const { title, description, children, onClose, isWide = false, isKept = false } = props
  const keep = isKept ? (event: Event) => event.preventDefault() : undefined
  // Radix closes it on Escape; keys of what is behind it do nothing.
  useKeys({}, { isModal: true })
  return (
    <Radix.Root open onOpenChange={(isOpen) => isOpen || onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Radix.Content
          className={`fixed top-[8vh] left-1/2 z-50 grid max-h-[84vh] w-[calc(100vw-24px)] -translate-x-1/2 grid-rows-[auto_minmax(0,1fr)] rounded-md border border-line bg-surface shadow-float ${isWide ? 'max-w-[880px]' : 'max-w-[520px]'}`}
          {...(description === undefined ? { 'aria-describedby': undefined } : {})}
          onOpenAutoFocus={focusFirst}
          onEscapeKeyDown={keep}
          onInteractOutside={keep}
        >
          <div className="flex items-start justify-between gap-4 px-5 pt-4 pb-2">
            <div className="min-w-0">
              <Radix.Title className="text-lg">{title}</Radix.Title>
              {description !== undefined && (
                <Radix.Description asChild>
                  <div className="mt-1 text-muted">{description}</div>
                </Radix.Description>
              )}
            </div>
            <Button look="quiet" className="px-2!" aria-label="Close" onClick={onClose}>
              ✕
            </Button>
          </div>
          <div className="overflow-y-auto px-5 pt-1 pb-5">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

/** The focus goes to what is marked with `data-first`, or else to the first control. */
function focusFirst(event: Event): void {
  const first = (event.currentTarget as HTMLElement | null)?.querySelector<HTMLElement>('[data-first]')
  if (first == null) return
  event.preventDefault()
  first.focus()
}

/** The row of controls at the end of a dialog or a form. */
export function Actions({ children }: { readonly children: ReactNode }) {
  return <div className="mt-5 flex flex-wrap justify-end gap-2">{children}</div>
}
