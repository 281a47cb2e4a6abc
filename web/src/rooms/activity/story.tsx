import { Link } from 'wouter'
import { isNotFound } from '../../api/failure.ts'
import { refresh, useRead } from '../../api/queries.ts'
import { useLive } from '../../live/live.ts'
import { paths } from '../../paths.ts'
import { useKeepingQuery } from '../../ui/address.ts'
import { visible } from '../../ui/hostile.ts'
import { Empty, ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Sheet } from '../../ui/page.tsx'
import { reasonText } from '../../ui/reasons.ts'
import { Mark } from '../../ui/status.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { type Chapter, storyOf } from './story.ts'

const ROUTE = 'GET /v1/admin/audit'
/** A life has fewer entries; one that failed ends with its newest. */
const MOST = 1_000

/** A credential's life in words, from its request until nothing of it is left. */
export function Story({ id, query }: { readonly id: string; readonly query: Record<string, string> }) {
  const { data, error, refetch } = useRead(ROUTE, { query: { ...query, limit: MOST } })
  useLive((entry) => {
    if (entry.credential_id === id) void refresh(ROUTE)
  })
  const chapters = data === undefined ? undefined : storyOf(data)
  return (
    <Sheet>
      <h2 className="text-lg text-wrap">
        The life of{' '}
        <Link className="inline-block text-accent underline" href={paths.credential(id)}>
          <code className="text-base [overflow-wrap:anywhere]">{visible(id)}</code>
        </Link>
      </h2>
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {chapters === undefined && error === null && <Skeleton lines={8} />}
      {chapters?.length === 0 && (
        <Empty title="Nothing is recorded of this credential">
          Its id may be another one, its entries may be older than what the server keeps, or the other filters
          leave none.
        </Empty>
      )}
      {chapters !== undefined && chapters.length > 0 && (
        <ol className="grid">
          {chapters.map((chapter) => (
            <ChapterLine key={chapter.id} chapter={chapter} />
          ))}
          {data?.[0]?.action !== 'credential.settled' && <Now id={id} />}
        </ol>
      )}
    </Sheet>
  )
}

const LINE = 'relative grid grid-cols-[20px_minmax(0,1fr)] gap-x-3 pb-6 last:pb-0'
const THREAD = 'before:absolute before:top-6 before:bottom-0 before:left-[5px] before:w-px before:bg-line'

function ChapterLine({ chapter }: { readonly chapter: Chapter }) {
  const keep = useKeepingQuery()
  const { id, at, look, title, text, after } = chapter
  return (
    <li className={`${LINE} ${THREAD}`}>
      <Mark look={look} />
      <div>
        <div className="flex flex-wrap items-baseline gap-x-3">
          <Link
            href={keep(paths.entry(id))}
            className={`font-semibold hover:underline [overflow-wrap:anywhere] ${look === 'bad' ? 'text-bad' : ''}`}
          >
            {visible(title)}
          </Link>
          <span className="text-sm text-muted">
            <Time at={at} />
            {after !== '' && `, ${after} later`}
          </span>
        </div>
        {text !== '' && (
          <p className="text-muted">
            <Hostile text={text} />
          </p>
        )}
      </div>
    </li>
  )
}

/** Where it stands today. */
function Now({ id }: { readonly id: string }) {
  const { data, error } = useRead('GET /v1/admin/tokens/:id', { id }, { refetchInterval: 10_000 })
  if (data === undefined)
    return isNotFound(error) ? (
      <li className={LINE}>
        <Mark look="off" />
        <p className="text-muted">The server does not keep it any more.</p>
      </li>
    ) : null
  if (data.status === 'active')
    return (
      <li className={LINE}>
        <Mark look="ok" />
        <div>
          <p className="font-semibold">It is live</p>
          <Life from={data.created_at} until={data.expires_at} />
        </div>
      </li>
    )
  if (data.upstream !== 'pending') return null
  return (
    <li className={LINE}>
      <Mark look={data.stuck === true ? 'bad' : 'wait'} />
      <div>
        <p className={`font-semibold ${data.stuck === true ? 'text-bad' : 'text-wait'}`}>
          The upstream may still accept it
        </p>
        <p className="text-muted">
          {data.failure === undefined ? 'It is being ended.' : reasonText(data.failure)}
          {data.attempts !== undefined && data.attempts > 0 && ` Tries so far: ${data.attempts}.`} Next try{' '}
          <Time at={data.next_try} none="is not planned" />.
        </p>
      </div>
    </li>
  )
}
