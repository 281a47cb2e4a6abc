import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Input, TextArea } from '../../ui/fields.tsx'

interface Props {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': true | undefined
  readonly value: string
  readonly isSecret: boolean
  readonly placeholder: string | undefined
  readonly onChange: (value: string) => void
  /** For the names of the controls beside it. */
  readonly name: string
}

/** A password on one line, hidden unless it is asked for. */
export function SecretInput({ isSecret: _, name, onChange, ...input }: Props) {
  const [isShown, setShown] = useState(false)
  return (
    <div className="flex gap-2">
      <Input
        {...input}
        type={isShown ? 'text' : 'password'}
        autoComplete="new-password"
        onChange={({ target }) => onChange(target.value)}
      />
      <Show name={name} isShown={isShown} onToggle={() => setShown(!isShown)} />
    </div>
  )
}

/** A key or a certificate: several lines, which no password field keeps, pasted or from a file. */
export function LongInput({ isSecret, name, onChange, ...input }: Props) {
  const [isShown, setShown] = useState(!isSecret)
  return (
    <div className="grid gap-1">
      <TextArea
        {...input}
        rows={3}
        autoComplete="off"
        className={`font-mono text-xs! ${isShown ? '' : '[-webkit-text-security:disc]'}`}
        onChange={({ target }) => onChange(target.value)}
      />
      <div className="flex gap-2">
        {isSecret && <Show name={name} isShown={isShown} onToggle={() => setShown(!isShown)} />}
        <FromFile name={name} onText={onChange} />
      </div>
    </div>
  )
}

function Show(props: { readonly name: string; readonly isShown: boolean; readonly onToggle: () => void }) {
  return (
    <Button aria-label={`${props.isShown ? 'Hide' : 'Show'} ${props.name}`} onClick={props.onToggle}>
      {props.isShown ? 'Hide' : 'Show'}
    </Button>
  )
}

/** The text of a file of this person, which is read here and sent with the form. */
function FromFile({ name, onText }: { readonly name: string; readonly onText: (text: string) => void }) {
  return (
    <label className="inline-flex min-h-8 cursor-pointer items-center rounded-sm border border-edge/60 px-3 text-sm font-medium focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-accent hover:bg-sunken">
      From a file…
      <input
        type="file"
        className="sr-only"
        aria-label={`${name} from a file`}
        onChange={async ({ target }) => {
          const file = target.files?.[0]
          if (file !== undefined) onText(await file.text())
          target.value = ''
        }}
      />
    </label>
  )
}
