import { useState } from 'react'
import { Input } from './fields.tsx'

interface Props {
  readonly label: string
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
  /** The one that `/` goes to. */
  readonly isFirst?: boolean
  readonly width?: string
}

/** A filter that is taken on Enter, or when it is left: the server asks for whole names. */
export function NameFilter({ label, value, onChange, isFirst = false, width = 'sm:w-44!' }: Props) {
  // What is typed counts until the filter changes, here or by a link.
  const [typed, setTyped] = useState({ over: value, text: value ?? '' })
  const text = typed.over === value ? typed.text : (value ?? '')
  const take = () => {
    const next = text.trim() || undefined
    if (next !== value) onChange(next)
  }
  return (
    <Input
      type="search"
      aria-label={label}
      placeholder={label}
      className={width}
      value={text}
      {...(isFirst ? { 'data-filter': true } : {})}
      onChange={({ target }) => setTyped({ over: value, text: target.value })}
      onKeyDown={({ key }) => key === 'Enter' && take()}
      onBlur={take}
    />
  )
}
