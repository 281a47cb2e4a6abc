import { Link } from 'wouter'
import type { Backend } from '../../../../src/client/wire.ts'
import { paths } from '../../paths.ts'
import { Fact, Facts } from '../../ui/facts.tsx'
import { reasonText } from '../../ui/reasons.ts'
import { Status } from '../../ui/status.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { endOf } from '../kinds/use-kinds.ts'
import { SecretAge } from './cards.tsx'
import { BackendStates } from './status.tsx'

/** Whether it works, from the calls of the node that answers, and how it ends what it issued. */
export function BackendHealth({ backend }: { readonly backend: Backend }) {
  const { health, unended, last_revocation_failure: failed, name } = backend
  return (
    <>
      {unended !== undefined && (
        <div role="alert" className="rounded-sm border-l-4 border-bad bg-bad-soft px-3 py-2">
          <p className="font-semibold text-bad">
            {unended.count.toLocaleString('en')} credentials have ended, and the upstream may still accept
            them.
          </p>
          <p>
            The first one since <Time at={unended.since} />. The server goes on trying.{' '}
            <Link
              className="text-accent underline"
              href={paths.credentials({ backend: name, unended: 'true' })}
            >
              Show them
            </Link>
          </p>
        </div>
      )}
      <Facts>
        <Fact name="State">
          <BackendStates row={backend} />
        </Fact>
        {health?.last_failure_reason != null && (
          <Fact name="Why it failed last">
            {reasonText(health.last_failure_reason)} <Time at={health.last_failure} />
            {health.last_failure_detail !== undefined && (
              <p className="text-muted">
                <Hostile text={health.last_failure_detail} />
              </p>
            )}
          </Fact>
        )}
        <Fact name="Last success">
          <Time at={health?.last_success} none="none since this node started" />
        </Fact>
        <Fact name="Live credentials">
          <Link className="text-accent underline" href={paths.credentials({ backend: name })}>
            {backend.live.toLocaleString('en')}
          </Link>{' '}
          <span className="text-muted">a revoked one {endOf(backend.revocation)}</span>
        </Fact>
        <Fact name="Last end upstream">
          <Time at={backend.last_revocation} none="none yet" />
        </Fact>
        <Fact name="Last failed end">
          {failed === undefined ? (
            <span className="text-muted">none</span>
          ) : (
            <>
              <Time at={failed.at} />, {reasonText(failed.reason)}{' '}
              <Link className="text-accent underline" href={paths.credential(failed.credential_id)}>
                The credential
              </Link>
            </>
          )}
        </Fact>
        <Breakers backend={backend} />
        <Fact name="Mayfly’s secret">
          <SecretAge row={backend} />
        </Fact>
        <Fact name="Added">
          <Time at={backend.created_at} />
        </Fact>
      </Facts>
    </>
  )
}

/** Only where one of them stands in the way. */
function Breakers({ backend: { health } }: { readonly backend: Backend }) {
  if (health === undefined) return null
  const { issuing, revoking } = health.breakers
  if (issuing === 'closed' && revoking === 'closed') return null
  const word = { closed: 'runs', open: 'paused', trying: 'one call is tried' } as const
  const look = (state: keyof typeof word) => (state === 'closed' ? 'ok' : 'wait')
  return (
    <Fact name="Calls to it">
      <span className="flex flex-wrap gap-x-4">
        <Status look={look(issuing)}>{`issuing: ${word[issuing]}`}</Status>
        <Status look={look(revoking)}>{`ending: ${word[revoking]}`}</Status>
      </span>
      <p className="text-xs text-muted">
        After failures in a row the server spares the upstream for a while. A check that succeeds lets all
        through.
      </p>
    </Fact>
  )
}
