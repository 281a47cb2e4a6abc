import { Link } from 'wouter'
import type { Agent, Explanation, PendingEnrollment } from '../../../../src/client/wire.ts'
import { paths } from '../../paths.ts'
import { Copy } from '../../ui/copy.tsx'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Scopes } from '../../ui/scopes.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { isClaim, tokenOf } from './approval.ts'
import { Difference } from './difference.tsx'
import { PolicyView } from './policy-view.tsx'
import { RequestStatus } from './status.tsx'

interface Props {
  readonly row: PendingEnrollment
  readonly explained: { readonly data: Explanation | undefined; readonly error: unknown }
  readonly holder: Agent | undefined
  /** The longest life that its policy allows. */
  readonly most: string | undefined
}

export function RequestFacts({ row, explained, holder, most }: Props) {
  const isPending = row.status === 'pending'
  return (
    <>
      <Facts>
        <Fact name="State">
          <RequestStatus row={row} />
        </Fact>
        {isPending ? (
          <Fact name="To be decided in">
            <Life from={row.created_at} until={row.expires_at} />
          </Fact>
        ) : (
          <Decision row={row} />
        )}
        <Fact name="For how long">
          {row.expires_in ??
            (most === undefined ? 'without end, unless you set one' : `${most}, as its policy says`)}
        </Fact>
        {row.reason !== undefined && (
          <Fact name="Its reason">
            <span className="block rounded-sm border-l-2 border-line pl-2">
              <Hostile text={row.reason} />
            </span>
          </Fact>
        )}
      </Facts>
      <Section title={isPending ? 'What it would get' : 'What it asked for, or was given'}>
        {!isPending ? (
          <Scopes scopes={row.scopes} />
        ) : isClaim(row) ? (
          <p className="text-muted">Nothing, until you give it scopes. Its next login then has them.</p>
        ) : (
          <Difference row={row} />
        )}
        {isPending && row.type === 'amendment' && holder !== undefined && (
          <div className="mt-3">
            <p className="mb-1 text-sm text-muted">It holds now</p>
            <Scopes scopes={holder.scopes} />
          </div>
        )}
        {row.warnings?.map((warning) => (
          <p key={warning} className="mt-2 text-xs text-muted">
            <Hostile text={warning} />
          </p>
        ))}
      </Section>
      <WhoAsks row={row} holder={holder} />
      <PolicyView row={row} explanation={explained.data} error={explained.error} />
    </>
  )
}

function Decision({ row }: { readonly row: PendingEnrollment }) {
  return (
    <>
      <Fact name="Decided">
        <Time at={row.decided_at} none="not by anybody" />
        {row.decided_by !== undefined && (
          <>
            {' by '}
            <Hostile text={row.decided_by} most={120} />
          </>
        )}
      </Fact>
      {row.decision_note !== undefined && (
        <Fact name="Said with it">
          <Hostile text={row.decision_note} />
        </Fact>
      )}
      {row.status === 'approved' && row.type === 'enroll' && (
        <Fact name="Collected">
          <Time at={row.collected_at} none="not yet" />
        </Fact>
      )}
    </>
  )
}

/** Whom the platform says it is. The platform signed all of it, and may have written anything. */
function Token({ row }: { readonly row: PendingEnrollment }) {
  const { platform, issuer, subject } = tokenOf(row)
  return (
    <>
      <Fact name="Platform">{visible(platform)}</Fact>
      <Fact name="Issuer">
        <Hostile text={issuer} />
      </Fact>
      <Fact name="Subject">
        <Hostile text={subject} />
      </Fact>
    </>
  )
}

interface SaidProps {
  readonly title: string
  readonly facts: readonly (readonly [string, unknown])[]
}

function Said({ title, facts }: SaidProps) {
  if (facts.length === 0) return null
  return (
    <div className="mt-4">
      <p className="mb-1 text-sm text-muted">{title}</p>
      <Facts>
        {facts.map(([name, value]) => (
          <Fact key={name} name={<Hostile text={name} most={80} />}>
            <Hostile text={typeof value === 'string' ? value : JSON.stringify(value)} />
          </Fact>
        ))}
      </Facts>
    </div>
  )
}

/** Whom a person would trust: all of it is what a stranger says, but for the address and the key. */
function WhoAsks({ row, holder }: { readonly row: PendingEnrollment; readonly holder: Agent | undefined }) {
  const { claims, leftOut } = tokenOf(row)
  return (
    <Section title={isClaim(row) ? 'Who came in' : 'Who asks'}>
      <Facts>
        {isClaim(row) && <Token row={row} />}
        {(row.type === 'amendment' || row.agent_id !== undefined) && (
          <Fact name="Agent">
            <Link className="text-accent underline" href={paths.agent(row.name)}>
              {visible(row.name)}
            </Link>
            {holder?.owner !== undefined && (
              <span className="text-muted">
                {' '}
                of <Hostile text={holder.owner} most={80} />
              </span>
            )}
          </Fact>
        )}
        <Fact name="From">
          {row.ip_address === null ? (
            <span className="text-muted">not known</span>
          ) : (
            <code>{row.ip_address}</code>
          )}
        </Fact>
        {row.public_key_fingerprint !== null && (
          <Fact name="Key fingerprint">
            <code className="break-all">{row.public_key_fingerprint}</code>{' '}
            <Copy text={row.public_key_fingerprint} what="the fingerprint" />
            <p className="text-xs text-muted">
              Compare it with the one that <code>mayfly enroll</code> shows there.
            </p>
          </Fact>
        )}
        <Fact name={isClaim(row) ? 'Came in' : 'Asked'}>
          <Time at={row.created_at} />
        </Fact>
        <Fact name="Id">
          <code>{row.id}</code> <Copy text={row.id} what="the id" />
        </Fact>
      </Facts>
      {isClaim(row) ? (
        <Said title="What its token says" facts={claims} />
      ) : (
        <Said title="What it says of itself" facts={Object.entries(row.metadata ?? {})} />
      )}
      {leftOut > 0 && <p className="mt-2 text-xs text-muted">{leftOut} more claims do not fit here.</p>}
    </Section>
  )
}
