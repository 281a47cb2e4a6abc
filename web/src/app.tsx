import { lazy, Suspense, useEffect, useState, useSyncExternalStore } from 'react'
import { useLocation } from 'wouter'
import { cancelAll, firstWaiting, onWaiting } from './api/confirm.ts'
import { queries } from './api/queries.ts'
import { useKey } from './api/session.ts'
import { takeLink } from './login/link.ts'
import { LogIn } from './login/log-in.tsx'
import { takeAnswer } from './login/sso.ts'
import { paths } from './paths.ts'
import { type Later, later, useLater } from './shell/later.ts'
import { Shell } from './shell/shell.tsx'
import { Notices } from './ui/notices.tsx'

/** The answer of a provider of single sign-on, with which this page was opened. */
const answer = takeAnswer()

const CONTINUE = later(async () => {
  const { Continue } = await import('./login/continue.tsx')
  return () => <Continue answer={answer} />
})
const ALLOW = later(async () => (await import('./allow/allow.tsx')).Allow)
const LogInAgain = lazy(async () => ({ default: (await import('./ui/log-in-again.tsx')).LogInAgain }))

/** The page to log in, or the console. A link in the address is followed in both cases: it may be another person's. */
export function App() {
  const key = useKey()
  const [link, setLink] = useState(takeLink)
  useEffect(() => {
    // A link that is pasted while the page is open loads nothing.
    const onHash = () => setLink((before) => takeLink() ?? before)
    addEventListener('hashchange', onHash)
    return () => removeEventListener('hashchange', onHash)
  }, [])
  // What one person has read is not there for the next.
  useEffect(() => {
    if (key !== null) return
    queries.clear()
    cancelAll()
  }, [key])
  return (
    <>
      <View sessionKey={key} link={link} onLinkDone={() => setLink(undefined)} />
      <Suspense>
        <Confirmations />
      </Suspense>
      <Notices />
    </>
  )
}

interface ViewProps {
  readonly sessionKey: string | null
  readonly link: string | undefined
  readonly onLinkDone: () => void
}

function View({ sessionKey, link, onLinkDone }: ViewProps) {
  const [path] = useLocation()
  if (path === paths.sso() && (answer !== undefined || sessionKey !== null)) return <Loaded page={CONTINUE} />
  if (sessionKey === null || link !== undefined)
    return (
      <LogIn
        link={link}
        note={path === paths.allow() ? 'A command asks to be logged in. Log in yourself first.' : undefined}
        onDone={onLinkDone}
      />
    )
  return path === paths.allow() ? <Loaded key={sessionKey} page={ALLOW} /> : <Shell key={sessionKey} />
}

/** A page that stands alone, as soon as its code is there. */
function Loaded({ page }: { readonly page: Later }) {
  const Page = useLater(page)
  return Page === undefined ? null : <Page />
}

/** Requests that wait for another login of the person. */
function Confirmations() {
  const waiting = useSyncExternalStore(onWaiting, firstWaiting)
  return waiting === undefined ? null : <LogInAgain key={waiting.challenge} waiting={waiting} />
}
