import { useEffect, useEffectEvent } from 'react'

/** What each key does; `G C` for one key after another. Letters are written as capitals. */
export type Keys = Readonly<Record<string, ((event: KeyboardEvent) => void) | undefined>>

/** The newest set of keys is asked first, so that a dialog or a room takes a key before the frame does. */
const stack: { readonly keys: () => Keys; readonly isModal: boolean }[] = []
let prefix = ''
let prefixTimer: ReturnType<typeof setTimeout> | undefined

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

function nameOf(event: KeyboardEvent): string {
  const name = event.key.length === 1 ? event.key.toUpperCase() : event.key
  return event.ctrlKey || event.metaKey ? `Ctrl ${name}` : name
}

function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey) return
  const name = nameOf(event)
  const isChord = event.ctrlKey || event.metaKey
  if (isTyping(event.target) && !isChord && name !== 'Escape') return
  const names = prefix === '' ? [name] : [`${prefix} ${name}`, name]
  prefix = ''
  clearTimeout(prefixTimer)
  for (const one of names) {
    for (const { keys, isModal } of stack.toReversed()) {
      const work = keys()[one]
      if (work !== undefined) {
        event.preventDefault()
        work(event)
        return
      }
      if (isModal) return
    }
  }
  if (name === 'G' && !isChord) {
    prefix = name
    prefixTimer = setTimeout(() => {
      prefix = ''
    }, 1_500)
  }
}

/** Keys while this component is there. `isModal`: keys of what is behind it do nothing. */
export function useKeys(keys: Keys, { isModal = false, isOn = true } = {}): void {
  const current = useEffectEvent(() => keys)
  useEffect(() => {
    if (!isOn) return undefined
    const entry = { keys: () => current(), isModal }
    if (stack.length === 0) addEventListener('keydown', press)
    stack.push(entry)
    return () => {
      stack.splice(stack.indexOf(entry), 1)
      if (stack.length === 0) removeEventListener('keydown', press)
    }
  }, [isModal, isOn])
}
