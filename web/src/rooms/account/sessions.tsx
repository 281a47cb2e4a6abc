import { refresh, useRead } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Section } from '../../ui/facts.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { tell, tellFailure } from '../../ui/notices.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { isCommand, type Session, treeOf } from './session-tree.ts'

const ROUTE = 'GET /v1/admin/sessions'

interface Props {
  readonly operatorId: string
  /** One's own account: where a command of another machine is let in. */
  readonly isMine?: boolean
}

/** The sessions of one operator, each with the commands that it has allowed. */
export function Sessions({ operatorId, isMine = false }: Props) {
  const { data, error, refetch } = useRead(ROUTE, { query: { operator: operatorId } })
  return (
    <Section title="Sessions and commands" isOfPage>
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={2} />}
      {data?.length === 0 && <p className="text-muted">Not logged in now.</p>}
      <ul className="grid gap-1">
        {treeOf(data ?? []).map(({ session, commands }) => (
          <li key={session.id}>
            <SessionRow session={session} />
            {commands.length > 0 && (
              <ul className="ml-5" aria-label="Commands that this session has allowed">
                {commands.map((command) => (
                  <li key={command.id}>
                    <SessionRow session={command} isUnder />
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      {isMine && (
        <div className="mt-3 flex flex-wrap items-center justify-between gap-2">
          <p className="text-sm text-muted">
            <code>mayfly login</code> logs in the command of this machine, and{' '}
            <code>mayfly login --device</code> that of another, by a code.
          </p>
          <ButtonLink href={paths.allow()}>Type a code…</ButtonLink>
        </div>
      )}
    </Section>
  )
}

const METHODS: Readonly<Record<Session['method'], string>> = {
  link: 'by a link',
  invitation: 'by an invitation',
  passkey: 'by passkey',
  sso: 'by single sign-on',
  browser: 'by browser',
  device: 'by code',
}

interface RowProps {
  readonly session: Session
  /** It stands under the session that allowed it. */
  readonly isUnder?: boolean
}

function SessionRow({ session, isUnder = false }: RowProps) {
  const { id, user_agent, ip_address, host, method, last_used, created_at, expires_at, current } = session
  const isOfCommand = isCommand(session)
  const end = async () => {
    try {
      await admin.sessions.end(id)
      tell(isOfCommand ? 'The command is logged out.' : 'The session has ended.')
      await refresh(ROUTE)
    } catch (refused) {
      tellFailure(refused)
    }
  }
  return (
    <div className="flex flex-wrap items-center justify-between gap-2 border-b border-line/60 py-1.5">
      <span className="min-w-0 grow basis-60">
        {isOfCommand ? (
          <>
            Command on <Hostile text={host ?? 'a machine without a name'} most={120} />
          </>
        ) : (
          <Hostile text={user_agent ?? 'a browser without a name'} most={120} />
        )}
        <span className="flex flex-wrap items-center gap-x-3 text-xs text-muted">
          <span>
            {METHODS[method]}, from {ip_address ?? 'nowhere'}, last used <Time at={last_used} />
            {isOfCommand && !isUnder && '; the session that allowed it is over'}
          </span>
          <Life from={created_at} until={expires_at} />
        </span>
      </span>
      {current ? (
        <span className="text-sm text-muted">this session</span>
      ) : (
        <Button
          aria-label={isOfCommand ? `End the command on ${host ?? 'a machine without a name'}` : undefined}
          onClick={() => void end()}
        >
          End
        </Button>
      )}
    </div>
  )
}
