import { useMe } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { visible } from '../../ui/hostile.ts'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'

/** The nodes that serve this store, and what they have otherwise than the one that answers. */
export function Nodes() {
  const maySee = useMe()?.operations.includes('listNodes') === true
  const { data, error, refetch } = useRead(
    'GET /v1/admin/nodes',
    {},
    { enabled: maySee, refetchInterval: 30_000 },
  )
  if (!maySee) return null
  return (
    <section className="border-b border-line px-4 py-4" aria-labelledby="nodes">
      <h2 id="nodes" className="mb-2 text-base">
        Nodes
      </h2>
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={1} />}
      <ul className="grid gap-2">
        {data?.map((node) => (
          <li key={node.id} className="flex flex-wrap items-baseline gap-x-5 gap-y-1">
            <span className="min-w-40 font-medium">{visible(node.host)}</span>
            <span className="text-muted">{visible(node.version)}</span>
            <span>
              <span className="text-muted">seen</span> <Time at={node.seen_at} />
            </span>
            {node.this ? (
              <Status look="ok">answers you</Status>
            ) : node.differs.length === 0 ? (
              <Status look="ok">same settings</Status>
            ) : (
              <Status look="wait">{`has other ${node.differs.map(visible).join(', ')}`}</Status>
            )}
            <code className="text-xs text-muted">{visible(node.id)}</code>
          </li>
        ))}
      </ul>
      {data?.some(({ differs }) => differs.length > 0) === true && (
        <p className="mt-2 text-xs text-muted">
          These settings must be the same on all nodes: put the same file there, and restart or reload that
          node.
        </p>
      )}
    </section>
  )
}
