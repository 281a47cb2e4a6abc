import { useEffect, useState } from 'react'
import { request } from '../api/request.ts'
import { Button } from '../ui/button.tsx'
import { leaveFor, ownPath } from './sso.ts'

interface Ways {
  readonly names?: readonly string[]
  readonly isUnknown?: boolean
}

/** One for each provider of single sign-on. What failed stands where the page says what failed. */
export function SsoButtons({ onError }: { readonly onError: (error: unknown) => void }) {
  const [ways, setWays] = useState<Ways>({})
  const [busy, setBusy] = useState<string>()
  const [times, setTimes] = useState(1)
  useEffect(() => {
    const asking = new AbortController()
    request('GET /v1/console/login', { signal: asking.signal }).then(
      ({ sso }) => setWays({ names: sso.map(({ name }) => name) }),
      () => asking.signal.aborted || setWays({ isUnknown: times > 0 }),
    )
    return () => asking.abort()
  }, [times])
  useEffect(() => {
    // One who comes back from the provider by the Back key may choose again.
    const again = () => setBusy(undefined)
    addEventListener('pageshow', again)
    return () => removeEventListener('pageshow', again)
  }, [])
  const logIn = async (provider: string) => {
    setBusy(provider)
    onError(undefined)
    try {
      const { url } = await request('POST /v1/console/login/sso', { body: { provider } })
      leaveFor(url, { provider, goal: ownPath(location.href) })
    } catch (error) {
      onError(error)
      setBusy(undefined)
    }
  }
  if (ways.isUnknown === true)
    return (
      <p className="text-sm text-muted">
        The server did not say whether it has single sign-on.{' '}
        <Button look="link" onClick={() => setTimes(times + 1)}>
          Ask again
        </Button>
      </p>
    )
  return ways.names?.map((name) => (
    <Button
      key={name}
      className="min-h-8 justify-center whitespace-normal! py-1 [overflow-wrap:anywhere]"
      disabled={busy !== undefined}
      onClick={() => void logIn(name)}
    >
      {busy === name ? `Going to ${name}…` : `Log in with ${name} (single sign-on)`}
    </Button>
  ))
}
