import { Link } from 'wouter'
import type { Explanation } from '../../../../src/client/wire.ts'
import { paths } from '../../paths.ts'
import { Fact, Facts } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Scopes } from '../../ui/scopes.tsx'
import { Status } from '../../ui/status.tsx'
import { Hostile } from '../../ui/text.tsx'

/** What the server would do with an enrollment, now. */
export function Outcome({ explanation }: { readonly explanation: Explanation }) {
  const { name, decision, reason, policy, scopes, expires_in, warnings = [] } = explanation
  return (
    <section aria-label="What would happen" className="grid max-w-[760px] gap-2" aria-live="polite">
      <h2 className="text-base">
        {decision === 'approve' ? (
          <Status look="ok">{`${visible(name)} would come in at once`}</Status>
        ) : (
          <Status look="wait">{`${visible(name)} would wait for a person`}</Status>
        )}
      </h2>
      <Facts>
        {reason !== null && (
          <Fact name="Because">
            <Hostile text={reason} />
          </Fact>
        )}
        <Fact name="Policy">
          {policy === null ? (
            <span className="text-muted">none is for this name</span>
          ) : (
            <Link className="text-accent underline" href={paths.policy(policy)}>
              {policy}
            </Link>
          )}
        </Fact>
        <Fact name={decision === 'approve' ? 'With' : 'Asking for'}>
          <Scopes scopes={scopes} />
        </Fact>
        <Fact name="Lives">{expires_in ?? 'without end'}</Fact>
        {warnings.map((one) => (
          <Fact key={one} name="Note">
            <Hostile text={one} />
          </Fact>
        ))}
      </Facts>
    </section>
  )
}
