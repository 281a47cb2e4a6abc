import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Overview, PendingEnrollment } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { visible } from '../../ui/hostile.ts'
import { reasonText } from '../../ui/reasons.ts'
import { type Look, Mark } from '../../ui/status.tsx'
import { Name } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

/** Of each sort; the rooms have the rest. */
const MOST = 5

/** What a person has to decide or to repair, the worst first. */
export function Needs({ overview }: { readonly overview: Overview }) {
  const mayDecide = useRefusal('listPending') === undefined
  const mayList = useRefusal('listBackends') === undefined
  // The frame asks for the same.
  const pending = useRead('GET /v1/admin/pending', { query: { limit: 100 } }, { enabled: mayDecide })
  const backends = useRead('GET /v1/admin/backends', { query: { limit: 1_000 } }, { enabled: mayList })
  const down = (backends.data ?? []).filter(({ health }) => health?.state === 'down')
  const waiting = pending.data ?? []
  const { unended } = overview
  if (unended.length + down.length + waiting.length === 0) return null
  return (
    <section>
      <h2 className="mb-2 text-sm">What needs a person</h2>
      <ul>
        {unended.slice(0, MOST).map((one) => (
          <Stuck key={one.backend} unended={one} />
        ))}
        {down.slice(0, MOST).map(({ name, health }) => (
          <Need
            key={name}
            look="bad"
            href={paths.backend(name)}
            title={`${name} is down`}
            at={health?.last_failure}
          >
            {health?.last_failure_reason == null
              ? 'No reason is known.'
              : reasonText(health.last_failure_reason)}
          </Need>
        ))}
        {waiting.slice(0, MOST).map((one) => (
          <Waiting key={one.id} request={one} />
        ))}
      </ul>
    </section>
  )
}

/** One of them is asked for: it says when the next try is. */
function Stuck({ unended }: { readonly unended: Overview['unended'][number] }) {
  const { backend, count, since, last_failure } = unended
  const refused = useRefusal('listCredentials')
  const query = { backend, unended: 'true', limit: 1 }
  const { data } = useRead('GET /v1/admin/tokens', { query }, { enabled: refused === undefined })
  const [one] = data ?? []
  const reason = last_failure?.reason ?? one?.failure
  return (
    <Need
      look="bad"
      href={paths.credentials({ backend, unended: 'true' })}
      title={`${count.toLocaleString('en')} not ended at ${backend}`}
      at={since}
    >
      {reason == null ? 'The end is under way.' : reasonText(reason)}
      {one?.next_try !== undefined && (
        <>
          {' '}
          Next try <Time at={one.next_try} />.
        </>
      )}
    </Need>
  )
}

function Waiting({ request }: { readonly request: PendingEnrollment }) {
  const { id, name, type, scopes, ip_address, created_at } = request
  return (
    <Need
      look="wait"
      href={paths.request(id)}
      title={type === 'enroll' ? `${name} wants to become an agent` : `${name} asks for more`}
      at={created_at}
    >
      <Name text={scopes.join('  ')} mono />
      {ip_address !== null && <span className="sr-only">from {visible(ip_address)}</span>}
    </Need>
  )
}

interface NeedProps {
  readonly look: Look
  readonly href: string
  readonly title: string
  /** Since when. */
  readonly at: string | null | undefined
  readonly children: ReactNode
}

function Need({ look, href, title, at, children }: NeedProps) {
  return (
    <li className="grid grid-cols-[16px_minmax(0,1fr)_72px] items-baseline gap-x-2 border-t border-line/60 py-2 md:grid-cols-[16px_minmax(0,2fr)_minmax(0,3fr)_72px]">
      <Mark look={look} />
      <Link href={href} className={`font-semibold hover:underline ${look === 'bad' ? 'text-bad' : ''}`}>
        <Name text={title} />
      </Link>
      <div className="min-w-0 text-muted max-md:col-span-2 max-md:col-start-2 max-md:row-start-2">
        {children}
      </div>
      <span className="text-right text-muted max-md:col-start-3 max-md:row-start-1">
        <Time at={at} none="" />
      </span>
    </li>
  )
}
