import { type FormEvent, useEffect, useEffectEvent, useState } from 'react'
import { request } from '../api/request.ts'
import { enter, hasEnded } from '../api/session.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/fields.tsx'
import { ErrorNote, Warning } from '../ui/notes.tsx'
import { Frame } from './frame.tsx'
import { SsoButtons } from './sso-buttons.tsx'

interface Props {
  /** The secret of a link that was opened. */
  readonly link: string | undefined
  /** What waits for the login. */
  readonly note?: string | undefined
  readonly onDone: () => void
}

/** Log in with a passkey, by single sign-on, or by a link; the first link of a server asks who its operator is. */
export function LogIn({ link, note, onDone }: Props) {
  const [naming, setNaming] = useState<string>()
  const [error, setError] = useState<unknown>()
  const done = (key: string) => {
    enter(key)
    onDone()
  }
  const followLink = useEffectEvent(async (secret: string) => {
    setError(undefined)
    try {
      const { key, link: next } = await followOnce(secret)
      if (key === undefined) setNaming(next)
      else done(key)
    } catch (refused) {
      setError(refused)
      onDone()
    }
  })
  useEffect(() => {
    if (link !== undefined) void followLink(link)
  }, [link])
  if (naming !== undefined) return <Naming link={naming} onDone={done} />
  return (
    <Frame title="Log in">
      {hasEnded() && error === undefined && (
        <Warning>Your session has ended. Log in again, and you are back on this page.</Warning>
      )}
      {error !== undefined && <ErrorNote error={error} />}
      {note !== undefined && <p>{note}</p>}
      <PasskeyButton onDone={done} onError={setError} />
      <SsoButtons onError={setError} />
      <p className="text-muted">
        No passkey yet, or lost? Another operator invites you, or on the server&rsquo;s machine run{' '}
        <code>mayfly console</code>.
      </p>
    </Frame>
  )
}

/** A link is good once, and React may run an effect twice. */
const followed = new Map<string, ReturnType<typeof follow>>()
const follow = (link: string) => request('POST /v1/console/login/link', { body: { link } })
function followOnce(link: string): ReturnType<typeof follow> {
  const known = followed.get(link) ?? follow(link)
  followed.set(link, known)
  return known
}

interface PasskeyProps {
  readonly onDone: (key: string) => void
  readonly onError: (error: unknown) => void
}
function PasskeyButton({ onDone, onError }: PasskeyProps) {
  const [isBusy, setBusy] = useState(false)
  const logIn = async () => {
    setBusy(true)
    onError(undefined)
    try {
      const { options } = await request('POST /v1/console/login/options', {})
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(
        options as unknown as PublicKeyCredentialRequestOptionsJSON,
      )
      const answer = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
      const body = { assertion: answer.toJSON() as never }
      onDone((await request('POST /v1/console/login/passkey', { body })).key)
    } catch (error) {
      onError(error)
      setBusy(false)
    }
  }
  return (
    <Button look="primary" className="justify-center" onClick={logIn} disabled={isBusy}>
      Log in with a passkey
    </Button>
  )
}

function Naming({ link, onDone }: { readonly link: string; readonly onDone: (key: string) => void }) {
  const [state, setState] = useState<{ isSent: boolean; error?: unknown }>({ isSent: false })
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const [name, email] = [String(form.get('name')).trim(), String(form.get('email')).trim()]
    setState({ isSent: true })
    try {
      const { key } = await request('POST /v1/console/login/link', { body: { link, name, email } })
      if (key !== undefined) onDone(key)
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  return (
    <Frame title="You are the first operator">
      <p className="text-muted">You get all rights. Others are invited by you.</p>
      <form onSubmit={submit} className="grid gap-4">
        <TextField label="Name" name="name" autoComplete="name" required maxLength={128} autoFocus />
        <TextField
          label="E-mail address"
          name="email"
          type="email"
          autoComplete="email"
          required
          maxLength={254}
        />
        {state.error !== undefined && <ErrorNote error={state.error} />}
        <Button type="submit" look="primary" className="justify-center" disabled={state.isSent}>
          Become the first operator
        </Button>
      </form>
    </Frame>
  )
}
