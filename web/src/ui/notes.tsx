import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { type Failure, failureOf } from '../api/failure.ts'
import { useRead } from '../api/queries.ts'
import { paths } from '../paths.ts'
import { Button } from './button.tsx'

/** What failed, and what to do. In a form it stands in the form. */
export function ErrorNote({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  const { message, code, requestId }: Failure = failureOf(error)
  // Read from the cache alone: nobody may be logged in.
  const isOfSso = useRead('GET /v1/admin/me', {}, { enabled: false }).data?.sso != null
  return (
    <div role="alert" className="rounded-sm border-l-4 border-bad bg-bad-soft px-3 py-2 text-sm">
      <p>{message}</p>
      {code === 'confirmation_required' && !isOfSso && (
        <p>
          Passkeys are registered in{' '}
          <Link className="text-accent underline" href={paths.account()}>
            your account
          </Link>
          .
        </p>
      )}
      <p className="mt-0.5 text-xs text-muted">
        {code}
        {requestId !== undefined && ` · ${requestId}`}
        {retry !== undefined && (
          <>
            {' · '}
            <Button look="link" onClick={retry}>
              Try again
            </Button>
          </>
        )}
      </p>
    </div>
  )
}

/** Something that a person should know before they go on. */
export function Warning({ children }: { readonly children: ReactNode }) {
  return (
    <div role="note" className="rounded-sm border-l-4 border-wait bg-wait-soft px-3 py-2 text-sm">
      {children}
    </div>
  )
}

interface EmptyProps {
  readonly title: string
  /** The next step. */
  readonly children?: ReactNode
}

export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="grid justify-items-center gap-3 px-4 py-16 text-center">
      <p className="text-lg font-semibold">{title}</p>
      {children !== undefined && (
        <div className="max-w-[52ch] text-muted [&_code]:inline-block">{children}</div>
      )}
    </div>
  )
}

/** The shape of what comes, so that nothing moves when it is there. */
export function Skeleton({ lines = 3 }: { readonly lines?: number }) {
  return (
    <div aria-hidden="true" className="grid gap-3 py-2">
      {Array.from({ length: lines }, (_, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they never change
        <div key={n} className="skeleton h-4" style={{ width: `${92 - ((n * 17) % 40)}%` }} />
      ))}
    </div>
  )
}
