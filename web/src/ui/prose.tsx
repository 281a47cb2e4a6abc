import { Fragment } from 'react'
import { visible } from './hostile.ts'

/** A sentence of the documentation, in which `backquotes` mark what is typed as it is. */
export function Prose({ text }: { readonly text: string }) {
  return text.split('`').map((part, n) => {
    const key = `${n} ${part}`
    return n % 2 === 0 ? (
      <Fragment key={key}>{visible(part)}</Fragment>
    ) : (
      <code key={key}>{visible(part)}</code>
    )
  })
}
