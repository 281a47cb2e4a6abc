import { useState } from 'react'
import { Link } from 'wouter'
import type { Token } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { refresh, useRead } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Copy } from '../../ui/copy.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Detail } from '../../ui/page.tsx'
import { reasonText } from '../../ui/reasons.ts'
import { Scopes } from '../../ui/scopes.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { CredentialStatus, isUnended } from './status.tsx'

/** One credential: what it is, and where its end stands upstream. */
export function CredentialDetail({ id, back }: { readonly id: string; readonly back: string }) {
  const [isEnding, setEnding] = useState(false)
  const { data, error, refetch } = useRead('GET /v1/admin/tokens/:id', { id }, { refetchInterval: 5_000 })
  const refused = useRefusal('revokeAnyCredential')
  const isLive = data?.status === 'active'
  useEntries([
    {
      name: `End the credential ${id}`,
      words: 'revoke',
      group: 'Here',
      run: () => setEnding(true),
      refused: isLive ? refused : 'It has ended.',
    },
  ])
  return (
    <Detail
      kind="Credential"
      title={<code className="text-base">{id}</code>}
      back={back}
      actions={
        <>
          <Button look="danger" refused={isLive ? refused : 'It has ended.'} onClick={() => setEnding(true)}>
            End it
          </Button>
          <ButtonLink href={paths.activity({ credential: id })}>Its story</ButtonLink>
          <CopyAs command={`mayfly revoke ${id}`} request={`GET /v1/admin/tokens/${id}`} />
        </>
      }
    >
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={6} />}
      {data !== undefined && <CredentialFacts row={data} />}
      {isEnding && (
        <Confirm
          title="End this credential?"
          description="Its holder loses it at once. It cannot be undone; the agent can ask for another."
          action="End the credential"
          onClose={() => setEnding(false)}
          work={async () => {
            await admin.tokens.revoke(id)
            await refresh('GET /v1/admin/tokens', 'GET /v1/admin/tokens/:id')
          }}
        />
      )}
    </Detail>
  )
}

function CredentialFacts({ row }: { readonly row: Token }) {
  return (
    <>
      {isUnended(row) && (
        <div role="alert" className="rounded-sm border-l-4 border-bad bg-bad-soft px-3 py-2">
          <p className="font-semibold text-bad">The upstream has not ended it.</p>
          <p>
            {row.failure === undefined ? 'No reason is known.' : reasonText(row.failure)}{' '}
            {row.failure !== undefined && <code className="text-xs">{row.failure}</code>}
          </p>
          <p>
            Tries so far: {row.attempts ?? 1}. Next try <Time at={row.next_try} none="is not planned" />.
          </p>
        </div>
      )}
      <Facts>
        <Fact name="State">
          <CredentialStatus row={row} />
        </Fact>
        <Fact name="Agent">
          <Link className="text-accent underline" href={paths.agent(row.agent_name)}>
            {row.agent_name}
          </Link>
        </Fact>
        <Fact name="Backend">
          <Link className="text-accent underline" href={paths.backend(row.backend)}>
            {row.backend}
          </Link>
        </Fact>
        {row.run !== undefined && (
          <Fact name="Run">
            <Link className="text-accent underline" href={paths.run(row.run)}>
              <code>{row.run}</code>
            </Link>
          </Fact>
        )}
        <Fact name="Scopes">
          <Scopes scopes={row.scopes} />
        </Fact>
        <Fact name="Issued">
          <Time at={row.created_at} />
        </Fact>
        <Fact name={row.status === 'active' ? 'Ends' : 'Ended'}>
          {row.status === 'active' ? (
            <Life from={row.created_at} until={row.expires_at} />
          ) : (
            <Time at={row.ended_at} none="ended" />
          )}
        </Fact>
        {row.end_reason !== undefined && <Fact name="Why it ended">{row.end_reason}</Fact>}
        {row.upstream !== undefined && (
          <Fact name="Upstream">{UPSTREAM[row.upstream as keyof typeof UPSTREAM]}</Fact>
        )}
        <Fact name="Id">
          <code>{row.id}</code> <Copy text={row.id} what="the id" />
        </Fact>
      </Facts>
    </>
  )
}

const UPSTREAM = {
  revoked: 'gone there, too',
  pending: 'not gone there yet; it is being tried',
  expires: 'accepted there until its own expiry',
} as const
