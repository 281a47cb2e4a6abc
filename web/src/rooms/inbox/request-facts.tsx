import { Link } from 'wouter'
import type { Agent, Explanation, PendingEnrollment } from '../../../../src/client/wire.ts'
import { paths } from '../../paths.ts'
import { Copy } from '../../ui/copy.tsx'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Scopes } from '../../ui/scopes.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
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
        {isPending ? <Difference row={row} /> : <Scopes scopes={row.scopes} />}
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

/** Whom a person would trust: all of it is what a stranger says, but for the address and the key. */
function WhoAsks({ row, holder }: { readonly row: PendingEnrollment; readonly holder: Agent | undefined }) {
  const metadata = Object.entries(row.metadata ?? {})
  return (
    <Section title="Who asks">
      <Facts>
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
        <Fact name="Asked">
          <Time at={row.created_at} />
        </Fact>
        <Fact name="Id">
          <code>{row.id}</code> <Copy text={row.id} what="the id" />
        </Fact>
      </Facts>
      {metadata.length > 0 && (
        <div className="mt-4">
          <p className="mb-1 text-sm text-muted">What it says of itself</p>
          <Facts>
            {metadata.map(([name, value]) => (
              <Fact key={name} name={<Hostile text={name} most={80} />}>
                <Hostile text={typeof value === 'string' ? value : JSON.stringify(value)} />
              </Fact>
            ))}
          </Facts>
        </div>
      )}
    </Section>
  )
}
