import { useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { Frame } from '../login/frame.tsx'
import { paths } from '../paths.ts'
import { Button } from '../ui/button.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { visible } from '../ui/hostile.ts'
import { ErrorNote, Warning } from '../ui/notes.tsx'
import { Hostile } from '../ui/text.tsx'
import { Life, Time } from '../ui/time.tsx'
import { ownMachine } from './code.ts'
import { allow, type Command, deny, type Named } from './commands.ts'
import { Who } from './who.tsx'

interface Props {
  readonly named: Named
  readonly command: Command
  readonly onAgain: () => void
}

type Decision = 'allowed' | 'denied'
interface State {
  readonly sent?: Decision
  readonly done?: Decision
  readonly error?: unknown
}

/** Which command asks, and what the person says to it. */
export function Decide({ named, command, onAgain }: Props) {
  const [{ sent, done, error }, setState] = useState<State>({})
  const decide = async (decision: Decision) => {
    if (sent !== undefined) return
    setState({ sent: decision })
    try {
      const { redirect_to } = await (decision === 'allowed' ? allow(named) : deny(named))
      if (redirect_to !== undefined) goBackTo(redirect_to)
      setState({ done: decision })
    } catch (refused) {
      setState({ error: refused })
    }
  }
  if (done !== undefined) return <Done decision={done} command={command} />
  return (
    <Frame title="Log in this command?" isWide>
      <Who />
      <Asking command={command} />
      <Warning>
        {command.kind === 'device'
          ? 'Allow it only if you have just run mayfly login on this machine. Whoever sent you this code would act as you.'
          : 'Allow it only if you have just run mayfly login on this computer. Whoever sent you here would act as you.'}
      </Warning>
      {error !== undefined && <ErrorNote error={error} />}
      <div className="flex flex-wrap gap-2">
        <Button look="primary" disabled={sent !== undefined} onClick={() => void decide('allowed')}>
          {sent === 'allowed' ? 'Sent, waiting for the answer…' : 'Allow'}
        </Button>
        <Button look="danger" disabled={sent !== undefined} onClick={() => void decide('denied')}>
          {sent === 'denied' ? 'Sent, waiting for the answer…' : 'Deny'}
        </Button>
        {command.kind === 'device' && (
          <Button look="quiet" onClick={onAgain}>
            Another code
          </Button>
        )}
      </div>
    </Frame>
  )
}

/** Takes the answer to the command, which listens on this machine; never to another. */
function goBackTo(address: string): void {
  const url = ownMachine(address)
  if (url === undefined)
    throw new Error('The answer names an address that is not of this machine. Nothing was sent there.')
  location.assign(url.href)
}

/** What is known of it. The host is what the command says of itself. */
function Asking({ command }: { readonly command: Command }) {
  const box = useRef<HTMLDivElement>(null)
  // The Enter key of the code must not reach a control that allows.
  useEffect(() => box.current?.focus(), [])
  const { kind, host, ip_address, user_agent, redirect_uri, requested_at, expires_at } = command
  return (
    <div ref={box} tabIndex={-1} role="group" aria-label="The command that asks" className="outline-none">
      <Facts>
        <Fact name="Machine">
          <span className="font-semibold">
            <Hostile text={host} most={255} />
          </span>
          <span className="block text-xs text-muted">as the command calls it</span>
        </Fact>
        <Fact name="From address">
          {kind === 'device' ? (
            <code>{visible(ip_address ?? 'not known')}</code>
          ) : (
            <>
              this computer; it waits at <code>{visible(hostOf(redirect_uri))}</code>
            </>
          )}
        </Fact>
        {user_agent !== null && (
          <Fact name="Program">
            <Hostile text={user_agent} most={120} />
          </Fact>
        )}
        {requested_at !== null && expires_at !== null && (
          <>
            <Fact name="Asked">
              <Time at={requested_at} />
            </Fact>
            <Fact name="Waits">
              <Life from={requested_at} until={expires_at} />
            </Fact>
          </>
        )}
      </Facts>
    </div>
  )
}

const hostOf = (redirect: string | null): string => URL.parse(redirect ?? '')?.host ?? 'not known'

interface DoneProps {
  readonly decision: Decision
  readonly command: Command
}

function Done({ decision, command }: DoneProps) {
  const host = <Hostile text={command.host} most={64} />
  return (
    <Frame title={decision === 'allowed' ? 'Allowed' : 'Denied'} isWide>
      <div role="status" className="grid gap-2">
        {decision === 'allowed' ? (
          <p>
            Go back to your terminal: the command on {host} goes on there, logged in as you. It is listed, and
            can be ended, in{' '}
            <Link className="text-accent underline" href={paths.account()}>
              your account
            </Link>
            .
          </p>
        ) : (
          <p>
            The command on {host} is told so, and nothing is logged in. You may close this page. If somebody
            sent you here, tell whoever looks after Mayfly.
          </p>
        )}
        {command.kind === 'browser' && (
          <p className="text-muted">
            If your browser cannot open the next page, the command runs on another machine, or is gone. Use{' '}
            <code>mayfly login --device</code> there.
          </p>
        )}
      </div>
    </Frame>
  )
}
