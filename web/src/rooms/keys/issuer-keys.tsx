import type { IssuerKey } from '../../../../src/client/wire.ts'
import { useRead } from '../../api/queries.ts'
import { Copy } from '../../ui/copy.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Status } from '../../ui/status.tsx'
import { Life, Time } from '../../ui/time.tsx'

/** The keys of the issuer: one signs, those before it verify what they signed until their end. */
export function IssuerKeys() {
  const { data, error, refetch } = useRead('GET /v1/admin/keys/issuer')
  return (
    <section className="border-b border-line px-4 py-4" aria-labelledby="issuer-keys">
      <div className="mb-2 flex flex-wrap items-baseline gap-x-3">
        <h2 id="issuer-keys" className="text-base">
          Keys of the issuer
        </h2>
        <span className="text-xs text-muted">
          sign access tokens; their public halves are at <code>/oauth/jwks</code>
        </span>
      </div>
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={1} />}
      <ul className="grid gap-1">
        {data?.map((key) => (
          <OneKey key={key.key_id} row={key} />
        ))}
      </ul>
    </section>
  )
}

function OneKey({ row: { key_id, algorithm, created_at, valid_until } }: { readonly row: IssuerKey }) {
  return (
    <li className="flex flex-wrap items-center gap-x-5 gap-y-1">
      <span className="w-20">
        {valid_until === null ? <Status look="ok">signs</Status> : <Status look="off">verifies</Status>}
      </span>
      <span className="inline-flex min-w-0 items-center gap-1">
        <code className="text-xs [overflow-wrap:anywhere]">{key_id}</code>{' '}
        <Copy text={key_id} what="the key id" />
      </span>
      <span className="text-muted">{algorithm}</span>
      <span>
        <span className="text-muted">made</span> <Time at={created_at} />
      </span>
      {valid_until !== null && <Life from={created_at} until={valid_until} />}
    </li>
  )
}
