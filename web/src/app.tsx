import { useEffect, useState } from 'react'
import { queries } from './api/queries.ts'
import { useKey } from './api/session.ts'
import { takeLink } from './login/link.ts'
import { LogIn } from './login/log-in.tsx'
import { Shell } from './shell/shell.tsx'
import { Notices } from './ui/notices.tsx'

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
    if (key === null) queries.clear()
  }, [key])
  return (
    <>
      {key === null || link !== undefined ? (
        <LogIn link={link} onDone={() => setLink(undefined)} />
      ) : (
        <Shell key={key} />
      )}
      <Notices />
    </>
  )
}
