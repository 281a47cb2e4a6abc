import { type ReactNode, useEffect, useState } from 'react'
import { Link, Redirect, useLocation, useSearch } from 'wouter'
import { tellConfirmed } from '../api/confirm.ts'
import { request } from '../api/request.ts'
import { enter } from '../api/session.ts'
import { paths } from '../paths.ts'
import { Button, looksLike } from '../ui/button.tsx'
import { ErrorNote, Skeleton } from '../ui/notes.tsx'
import { Frame } from './frame.tsx'
import { type Errand, leaveFor, takeErrand } from './sso.ts'

/**
 * The page on both sides of a provider: it goes there to confirm (`?confirm=CHALLENGE`), and goes on when the browser is back from
 * there with an answer.
 */
export function Continue({ answer }: { readonly answer: string | undefined }) {
  const challenge = new URLSearchParams(useSearch()).get('confirm')
  if (answer !== undefined) return <Finish answer={answer} />
  if (challenge !== null) return <Begin challenge={challenge} />
  return <Redirect to={paths.overview()} replace />
}

/** An answer is good once, and React may run an effect twice. */
const finishing = new Map<string, ReturnType<typeof finish>>()
const finish = async (answer: string) => {
  const errand = takeErrand()
  try {
    return {
      errand,
      reply: await request('POST /v1/console/login/sso/finish', { body: { parameters: answer } }),
    }
  } catch (error) {
    return { errand, error }
  }
}
function finishOnce(answer: string): ReturnType<typeof finish> {
  const known = finishing.get(answer) ?? finish(answer)
  finishing.set(answer, known)
  return known
}

interface Finished {
  readonly errand?: Errand | undefined
  readonly error?: unknown
  readonly isConfirmed?: boolean
}

function Finish({ answer }: { readonly answer: string }) {
  const [, go] = useLocation()
  const [{ errand, error, isConfirmed }, setState] = useState<Finished>({})
  useEffect(() => {
    void finishOnce(answer).then(({ errand: done, reply, error: refused }) => {
      if (reply?.key !== undefined) {
        enter(reply.key)
        go(done?.goal ?? paths.overview(), { replace: true })
        return
      }
      if (reply?.confirmed !== undefined) {
        tellConfirmed(reply.confirmed)
        // Only a tab that a page has opened may be closed by a page.
        window.close()
      }
      setState({ errand: done, error: refused, isConfirmed: reply?.confirmed !== undefined })
    })
  }, [answer, go])
  if (isConfirmed === true)
    return (
      <Frame title="Confirmed">
        <p role="status">You may close this tab. The page that asked for it goes on by itself.</p>
      </Frame>
    )
  if (error === undefined)
    return (
      <Working title="Logging in…">What the provider has answered is being checked. Please wait.</Working>
    )
  const isLogin = errand === undefined || errand.goal !== undefined
  return (
    <Frame title={isLogin ? 'The login has failed' : 'Nothing is confirmed'}>
      <ErrorNote error={error} />
      {isLogin ? (
        <>
          {errand === undefined && (
            <p className="text-muted">
              This tab did not begin a login. One that was begun in another browser or window must end there.
            </p>
          )}
          <div>
            <Link href={errand?.goal ?? paths.overview()} replace className={looksLike('primary')}>
              To the page to log in
            </Link>
          </div>
        </>
      ) : (
        <p>
          Close this tab. The page that asked for it still waits, with what you entered: open it again from
          there, or cancel there and press the button once more.
        </p>
      )}
    </Frame>
  )
}

function Begin({ challenge }: { readonly challenge: string }) {
  const [error, setError] = useState<unknown>()
  const [times, setTimes] = useState(1)
  useEffect(() => {
    let isLeft = times === 0
    request('POST /v1/console/confirm/sso', { body: { challenge } }).then(
      ({ url }) => isLeft || leaveFor(url, { provider: '', goal: undefined }),
      (refused) => isLeft || setError(refused),
    )
    return () => {
      isLeft = true
    }
  }, [challenge, times])
  if (error === undefined) return <Working title="Going to the provider…">Log in there to confirm.</Working>
  const again = () => {
    setError(undefined)
    setTimes(times + 1)
  }
  return (
    <Frame title="Nothing is confirmed">
      <ErrorNote error={error} />
      <p>
        A confirmation is good for five minutes. Close this tab, cancel on the page that asked for it, and
        press the button there once more.
      </p>
      <div>
        <Button onClick={again}>Try again</Button>
      </div>
    </Frame>
  )
}

function Working({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Frame title={title}>
      <p role="status" className="text-muted">
        {children}
      </p>
      <Skeleton lines={2} />
    </Frame>
  )
}
