import type { Answer } from '../../../../src/client/routes.ts'
import type { Overview } from '../../../../src/client/wire.ts'
import { useRead } from '../../api/queries.ts'
import { useNow } from '../../ui/clock.ts'
import { visible } from '../../ui/hostile.ts'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { sizeOf } from '../../ui/sizes.ts'
import { Status } from '../../ui/status.tsx'
import { Name } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

/** A node says twice a minute that it is there. */
const SILENT_MS = 90_000

export const useNodes = (isAllowed = true) =>
  useRead('GET /v1/admin/nodes', {}, { enabled: isAllowed, refetchInterval: 30_000 })

/** The store, the nodes that serve it, and their versions. */
export function Server({ overview }: { readonly overview: Overview }) {
  const { data, error, refetch } = useNodes()
  const { engine, size_bytes } = overview.store
  const versions = new Set(data?.map(({ version }) => version))
  return (
    <section>
      <div className="mb-2 flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1">
        <h2 className="text-sm">Server</h2>
        <p className="flex flex-wrap gap-x-4 text-sm text-muted">
          <span>
            {engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'}
            {size_bytes !== undefined && `, ${sizeOf(size_bytes)}`}
          </span>
          <span>{overview.audit_entries_24h.toLocaleString('en')} audit entries in 24 hours</span>
          <span>version {visible(overview.version)}</span>
        </p>
      </div>
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={1} />}
      <ul>
        {data?.map((node) => (
          <NodeRow key={node.id} node={node} isMixed={versions.size > 1} />
        ))}
      </ul>
    </section>
  )
}

type Node = Answer<'GET /v1/admin/nodes'>[number]

function NodeRow({ node, isMixed }: { readonly node: Node; readonly isMixed: boolean }) {
  const now = useNow(5_000)
  const isSilent = now - Date.parse(node.seen_at) > SILENT_MS
  const differs = node.differs.map(visible).join(', ')
  return (
    <li className="grid grid-cols-[minmax(0,1fr)_auto] items-baseline gap-x-4 border-t border-line/60 py-2 md:grid-cols-[minmax(0,2fr)_96px_minmax(0,3fr)_120px]">
      <span className="flex min-w-0 items-baseline gap-2">
        {isSilent ? (
          <Status look="bad">silent</Status>
        ) : differs === '' ? (
          <Status look="ok">serves</Status>
        ) : (
          <Status look="wait">differs</Status>
        )}
        <Name text={node.host} />
      </span>
      <span className={isMixed ? 'text-wait' : 'text-muted'}>{visible(node.version)}</span>
      <span className="min-w-0 text-muted max-md:col-span-2">
        {node.this && 'this node answers you. '}
        {differs !== '' && `Its settings differ: ${differs}.`}
      </span>
      <span className="text-muted md:text-right">
        <Time at={node.seen_at} />
      </span>
    </li>
  )
}
