import { refresh, useRead } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { Button } from '../../ui/button.tsx'
import { Section } from '../../ui/facts.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { tell, tellFailure } from '../../ui/notices.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'

const ROUTE = 'GET /v1/admin/sessions'

/** The sessions of one operator. */
export function Sessions({ operatorId }: { readonly operatorId: string }) {
  const { data, error } = useRead(ROUTE, { query: { operator: operatorId } })
  const end = async (id: string) => {
    try {
      await admin.sessions.end(id)
      tell('The session has ended.')
      await refresh(ROUTE)
    } catch (refused) {
      tellFailure(refused)
    }
  }
  return (
    <Section title="Sessions" isOfPage>
      {error !== null && <ErrorNote error={error} />}
      {data === undefined && error === null && <Skeleton lines={2} />}
      {data?.length === 0 && <p className="text-muted">Not logged in now.</p>}
      <ul className="grid gap-1">
        {data?.map(({ id, user_agent, ip_address, last_used, created_at, expires_at, current }) => (
          <li
            key={id}
            className="flex flex-wrap items-center justify-between gap-2 border-b border-line/60 py-1.5"
          >
            <span className="min-w-0 grow">
              <Hostile text={user_agent ?? 'a browser without a name'} most={120} />
              <span className="flex flex-wrap items-center gap-x-3 text-xs text-muted">
                <span>
                  from {ip_address ?? 'nowhere'}, last used <Time at={last_used} />
                </span>
                <Life from={created_at} until={expires_at} />
              </span>
            </span>
            {current ? (
              <span className="text-sm text-muted">this session</span>
            ) : (
              <Button onClick={() => void end(id)}>End</Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  )
}
