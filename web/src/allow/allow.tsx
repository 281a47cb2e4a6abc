import { useEffect, useState } from 'react'
import { Frame } from '../login/frame.tsx'
import { ErrorNote, Skeleton } from '../ui/notes.tsx'
import { CodeForm } from './code-form.tsx'
import { type Command, look, type Named } from './commands.ts'
import { Decide } from './decide.tsx'
import { Who } from './who.tsx'

/**
 * A person allows the login of a command. With an authorization request in the address it is a command of this machine; otherwise
 * they type the code that a command shows. A code in the address is not looked at: whoever sends a link knows that one.
 */
export function Allow() {
  const [request] = useState(requestInAddress)
  const [found, setFound] = useState<{ readonly named: Named; readonly command: Command }>()
  if (found !== undefined)
    return <Decide named={found.named} command={found.command} onAgain={() => setFound(undefined)} />
  return (
    <Frame title="Log in a command" isWide>
      <Who />
      {request === undefined ? (
        <CodeForm onFound={(named, command) => setFound({ named, command })} />
      ) : (
        <Looking request={request} onFound={(command) => setFound({ named: { request }, command })} />
      )}
    </Frame>
  )
}

/** The query of RFC 6749 §4.1.1, as it came: the server reads it. */
function requestInAddress(): string | undefined {
  const query = location.search.slice(1)
  return new URLSearchParams(query).has('response_type') ? query : undefined
}

interface LookingProps {
  readonly request: string
  readonly onFound: (command: Command) => void
}

function Looking({ request, onFound }: LookingProps) {
  const [error, setError] = useState<unknown>()
  const [times, setTimes] = useState(1)
  // biome-ignore lint/correctness/useExhaustiveDependencies: asks once, and again when the person wants that
  useEffect(() => {
    let isGone = false
    look({ request }).then(
      (command) => isGone || onFound(command),
      (refused) => isGone || setError(refused),
    )
    return () => {
      isGone = true
    }
  }, [request, times])
  if (error === undefined) return <Skeleton lines={4} />
  const again = () => {
    setError(undefined)
    setTimes(times + 1)
  }
  return (
    <>
      <ErrorNote error={error} retry={again} />
      <p className="text-muted">
        Nothing was allowed. Run <code>mayfly login --browser</code> again; it opens this page with a new
        request.
      </p>
    </>
  )
}
