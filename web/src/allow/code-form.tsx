import { type FormEvent, useState } from 'react'
import { MayflyError } from '../../../src/client/errors.ts'
import { Button } from '../ui/button.tsx'
import { useNow } from '../ui/clock.ts'
import { TextField } from '../ui/fields.tsx'
import { ErrorNote } from '../ui/notes.tsx'
import { duration } from '../ui/times.ts'
import { codeOf } from './code.ts'
import { type Command, look, type Named } from './commands.ts'

interface State {
  readonly isSent: boolean
  readonly error?: unknown
  /** From when on the server takes another code. Epoch ms. */
  readonly next?: number | undefined
  /** Says that it cannot be a code. */
  readonly isNone?: boolean
}

/** The code of a command that runs somewhere else. People type it: it comes from nowhere but their hands. */
export function CodeForm({ onFound }: { readonly onFound: (named: Named, command: Command) => void }) {
  const [typed, setTyped] = useState('')
  const [state, setState] = useState<State>({ isSent: false })
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (state.isSent) return
    const code = codeOf(typed)
    if (code === undefined) {
      setState({ isSent: false, isNone: true })
      return
    }
    setState({ isSent: true })
    try {
      onFound({ user_code: code }, await look({ user_code: code }))
    } catch (error) {
      const wait = error instanceof MayflyError ? error.retryAfterSeconds : undefined
      setState({ isSent: false, error, next: wait === undefined ? undefined : Date.now() + wait * 1_000 })
    }
  }
  return (
    <form onSubmit={submit} className="grid gap-4">
      <TextField
        label="The code that your terminal shows"
        hint="Run mayfly login --device on the other machine. It shows a code of eight characters, which works for 10 minutes."
        error={state.isNone === true ? 'A code has eight letters and digits, such as BCDF-2345.' : undefined}
        className="h-12! font-mono text-xl! tracking-widest uppercase"
        placeholder="XXXX-XXXX"
        autoCapitalize="characters"
        autoCorrect="off"
        maxLength={32}
        required
        autoFocus
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
      />
      {state.error !== undefined && <ErrorNote error={state.error} />}
      {state.next !== undefined && <NextTry at={state.next} />}
      <Button type="submit" look="primary" className="justify-center" disabled={state.isSent}>
        {state.isSent ? 'Looking…' : 'Show which machine asks'}
      </Button>
    </form>
  )
}

function NextTry({ at }: { readonly at: number }) {
  const left = (at - useNow(1_000)) / 1_000
  return (
    <p role="status" className="text-muted">
      {left > 0 ? `You may try again in ${duration(left)}.` : 'You may try again now.'}
    </p>
  )
}
