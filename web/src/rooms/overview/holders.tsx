import { Link } from 'wouter'
import type { Overview } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Name } from '../../ui/text.tsx'
import { Area } from './area.tsx'
import { historyOf } from './history.ts'

/** Rows of each list; the rest is in the room of the credentials. */
const MOST = 10
const AGAIN_MS = 30_000

/** Who holds what now: by backend, with the day behind it, and by agent. */
export function Holders({ live }: { readonly live: Overview['live'] }) {
  if (live.total === 0) return null
  return (
    <div className="grid gap-x-12 gap-y-8 lg:grid-cols-2">
      <section>
        <h2 className="mb-2 text-sm">By backend</h2>
        <ul>
          {live.by_backend.slice(0, MOST).map(({ backend, count }) => (
            <BackendRow key={backend} backend={backend} count={count} total={live.total} />
          ))}
        </ul>
        <More count={live.by_backend.length - MOST} what="backends" />
      </section>
      <section>
        <h2 className="mb-2 text-sm">By agent</h2>
        <ul>
          {live.by_agent.slice(0, MOST).map(({ agent_id, agent_name, count }) => (
            <li key={agent_id} className={ROW}>
              <Link href={paths.credentials({ agent: agent_name })} className="hover:underline">
                <Name text={agent_name} />
              </Link>
              <Share count={count} total={live.total} />
              <Count count={count} />
            </li>
          ))}
        </ul>
        <More count={live.by_agent.length - MOST} what="agents" />
      </section>
    </div>
  )
}

const ROW =
  'grid grid-cols-[minmax(0,1fr)_minmax(64px,36%)_64px] items-center gap-4 border-t border-line/60 h-9'

function BackendRow(props: { readonly backend: string; readonly count: number; readonly total: number }) {
  const { backend, count } = props
  const refused = useRefusal('readActivity')
  const { data } = useRead(
    'GET /v1/admin/activity',
    { query: { backend, since: '24h', step: '15m' } },
    { enabled: refused === undefined, refetchInterval: AGAIN_MS },
  )
  return (
    <li className={ROW}>
      <Link href={paths.credentials({ backend })} className="hover:underline">
        <Name text={backend} />
      </Link>
      {data === undefined ? (
        <Share count={count} total={props.total} />
      ) : (
        <Area what={backend} history={historyOf(count, data)} now={count} className="h-5 w-full" />
      )}
      <Count count={count} />
    </li>
  )
}

const Count = ({ count }: { readonly count: number }) => (
  <span className="text-right tabular-nums">{count.toLocaleString('en')}</span>
)

/** The number beside it says the same. */
function Share({ count, total }: { readonly count: number; readonly total: number }) {
  return (
    <span aria-hidden="true" className="h-1 rounded-full bg-line">
      <span
        className="block h-full rounded-full bg-accent"
        style={{ width: `${Math.max(2, (count / Math.max(1, total)) * 100)}%` }}
      />
    </span>
  )
}

function More({ count, what }: { readonly count: number; readonly what: string }) {
  if (count <= 0) return null
  return (
    <p className="border-t border-line/60 pt-2 text-sm text-muted">
      <Link className="text-accent underline" href={paths.credentials()}>
        and {count} more {what}
      </Link>
    </p>
  )
}
