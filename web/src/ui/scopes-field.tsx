import type { ReactNode } from 'react'
import { Field, TextArea } from './fields.tsx'

interface Props {
  readonly label: string
  readonly hint?: ReactNode
  /** As it was typed; `linesOf` reads it. */
  readonly value: string
  readonly onChange: (text: string) => void
  readonly isFirst?: boolean
}

/** Scopes to type or to paste, one in a line. The server says what is wrong with them. */
export function ScopesField({ label, hint, value, onChange, isFirst = false }: Props) {
  return (
    <Field label={label} hint={hint ?? 'One in a line, such as orders:read.'}>
      {(control) => (
        <TextArea
          {...control}
          {...(isFirst ? { 'data-first': true } : {})}
          className="font-mono text-sm!"
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  )
}
