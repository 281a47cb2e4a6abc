import { useState } from 'react'
import type { Reconciled } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { admin } from '../../api/request.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { ErrorNote } from '../../ui/notes.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'

type Account = Reconciled['accounts'][number]
interface Found {
  readonly seen: number
  readonly accounts: readonly Account[]
  /** More is left to compare. */
  readonly next: string | null
}

/** One round; the next begins where it stopped. */
async function look(name: string, before: Found, revoke: boolean): Promise<Found> {
  const reply = await admin.backends.reconcile(name, {
    ...(revoke ? { revoke } : {}),
    ...(before.next === null ? {} : { cursor: before.next }),
  })
  return {
    seen: before.seen + reply.seen,
    accounts: [...before.accounts, ...reply.accounts],
    next: reply.next_cursor,
  }
}

const NONE: Found = { seen: 0, accounts: [], next: null }

/** Accounts with Mayfly's names that no living credential owns: left over from a crash, or from another installation. */
export function Reconcile({ name, isExact }: { readonly name: string; readonly isExact: boolean }) {
  const [state, setState] = useState<{ isSent: boolean; found?: Found; error?: unknown }>({ isSent: false })
  const [isEnding, setEnding] = useState(false)
  const refusal = useRefusal('reconcileBackend')
  const refused = isExact ? refusal : 'This kind cannot list what it has issued.'
  const compare = async (revoke: boolean) => {
    setState((before) => ({ ...before, isSent: true }))
    let found = NONE
    try {
      do {
        found = await look(name, found, revoke)
        const shown = found
        setState({ isSent: true, found: shown })
      } while (found.next !== null)
      setState({ isSent: false, found })
    } catch (error) {
      setState({ isSent: false, found, error })
      throw error
    }
  }
  const left = state.found?.accounts.filter(({ outcome }) => outcome !== 'revoked') ?? []
  return (
    <div className="grid gap-3">
      <p className="text-muted">
        Compares the accounts there that carry a name of Mayfly with the credentials here. Looking changes
        nothing.
      </p>
      <div className="flex flex-wrap items-center gap-2">
        <Button
          refused={refused}
          disabled={state.isSent}
          onClick={() => void compare(false).catch(() => undefined)}
        >
          {state.isSent ? 'Comparing…' : 'Compare'}
        </Button>
        {left.length > 0 && (
          <Button look="danger" refused={refused} onClick={() => setEnding(true)}>
            End {left.length} of them
          </Button>
        )}
        <CopyAs
          command={`mayfly backend reconcile ${name}`}
          request={`POST /v1/admin/backends/${name}/reconcile`}
          body={{}}
        />
      </div>
      <div role="status">
        {state.found !== undefined && <Findings found={state.found} isOver={!state.isSent} />}
      </div>
      {state.error !== undefined && !isEnding && <ErrorNote error={state.error} />}
      {isEnding && (
        <Confirm
          title={`End what Mayfly does not know at ${name}?`}
          description="Every account there that carries a name of Mayfly and that no living credential of this server owns ends, also those of other installations of Mayfly that use the same upstream."
          action="End them"
          onClose={() => setEnding(false)}
          work={() => compare(true)}
        />
      )}
    </div>
  )
}

const OUTCOMES = {
  left: ['wait', 'found'],
  revoked: ['off', 'ended'],
  failed: ['bad', 'the upstream refused'],
} as const

/** The first ones are enough to see what they are. */
const MOST = 100

function Findings({
  found: { seen, accounts },
  isOver,
}: {
  readonly found: Found
  readonly isOver: boolean
}) {
  const looked = `${seen.toLocaleString('en')} accounts with a name of Mayfly`
  if (accounts.length === 0)
    return <p>{isOver ? `${looked}; every one belongs to a living credential.` : `${looked} so far…`}</p>
  return (
    <div className="grid gap-1">
      <p>
        {looked}; {accounts.length.toLocaleString('en')} that no living credential owns:
      </p>
      <ul className="grid gap-1">
        {accounts.slice(0, MOST).map(({ credential_id, expires_at, outcome }) => (
          <li key={credential_id} className="flex flex-wrap items-baseline gap-x-4">
            <code className="text-xs">{credential_id}</code>
            <Status look={OUTCOMES[outcome][0]}>{OUTCOMES[outcome][1]}</Status>
            <span className="text-muted">
              ends there <Time at={expires_at} none="at no known time" />
            </span>
          </li>
        ))}
      </ul>
      {accounts.length > MOST && (
        <p className="text-muted">and {(accounts.length - MOST).toLocaleString('en')} more</p>
      )}
    </div>
  )
}
