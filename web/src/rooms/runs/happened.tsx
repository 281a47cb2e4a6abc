import { Link } from 'wouter'
import { useRefusal } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Section } from '../../ui/facts.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Mark } from '../../ui/status.tsx'
import { Name } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { factOf, lookOf, wordsOf } from '../activity/words.ts'
import type { Run } from './run.ts'

/** As many as fit; the others are in the activity. */
const SHOWN = 20
const AGAIN_MS = 5_000

/** What the audit has of a run, newest first. */
export function Happened({ run }: { readonly run: Run }) {
  const refused = useRefusal('queryWholeAudit')
  const { data, error, refetch } = useRead(
    'GET /v1/admin/audit',
    { query: { run: run.id, limit: SHOWN } },
    { enabled: refused === undefined, refetchInterval: AGAIN_MS },
  )
  return (
    <Section
      title="What happened"
      aside={
        <Link className="text-sm text-accent underline" href={paths.activity({ run: run.id })}>
          All in Activity
        </Link>
      }
    >
      {refused !== undefined && <p className="text-muted">{refused}</p>}
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {refused === undefined && data === undefined && error === null && <Skeleton lines={4} />}
      {data?.length === 0 && <p className="text-muted">Its entries are older than what the server keeps.</p>}
      <ul>
        {data?.map((entry) => (
          <li
            key={entry.id}
            className="grid grid-cols-[minmax(0,1.4fr)_minmax(0,1fr)_72px] items-baseline gap-3 border-b border-line/60 py-1"
          >
            <span className="flex min-w-0 items-baseline gap-2">
              <Mark look={lookOf(entry)} />
              <Link className="min-w-0 text-accent underline" href={paths.entry(entry.id)}>
                <Name text={wordsOf(entry.action)} />
              </Link>
            </span>
            <span className="min-w-0 text-muted">
              <Name
                text={[entry.backend, factOf(entry)].filter((one) => one !== null && one !== '').join(', ')}
              />
            </span>
            <span className="text-right">
              <Time at={entry.timestamp} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
