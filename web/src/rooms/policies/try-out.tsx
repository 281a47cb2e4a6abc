import { type FormEvent, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Input } from '../../ui/fields.tsx'

interface Props {
  readonly name: string | undefined
  readonly scope: string | undefined
  readonly onTry: (tried: { name: string | undefined; scope: string | undefined }) => void
}

/** What would happen to an agent with this name that asks for these scopes? The question is in the address. */
export function TryOut({ name = '', scope = '', onTry }: Props) {
  const [form, setForm] = useState({ name, scope })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onTry({ name: form.name.trim() || undefined, scope: form.scope.trim() || undefined })
  }
  return (
    <form onSubmit={submit} className="flex flex-wrap gap-2">
      <Input
        data-filter
        aria-label="Name of an agent"
        placeholder="Name of an agent"
        className="w-48!"
        maxLength={128}
        value={form.name}
        onChange={({ target }) => setForm({ ...form, name: target.value })}
      />
      <Input
        aria-label="Scopes, separated by spaces"
        placeholder="Scopes; none: those of the policy"
        className="w-72! max-w-full"
        value={form.scope}
        onChange={({ target }) => setForm({ ...form, scope: target.value })}
      />
      <Button type="submit" look="primary" className="min-h-9!">
        What would happen?
      </Button>
      {name !== '' && (
        <Button look="quiet" onClick={() => onTry({ name: undefined, scope: undefined })}>
          Clear
        </Button>
      )}
    </form>
  )
}
