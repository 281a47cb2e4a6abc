import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import type { Agent } from '../../../../src/client/wire.ts'
import { useMe } from '../../api/me.ts'
import { useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { Copy, Snippet } from '../../ui/copy.tsx'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { ScopesLine } from '../../ui/scopes.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { ScopeTree } from './scope-tree.tsx'

/** As many as fit beside the rest; the others are in the room of credentials. */
const SHOWN = 12

export function AgentFacts({ agent }: { readonly agent: Agent }) {
  return (
    <>
      <Facts>
        <Fact name="Owner">
          {agent.owner === undefined ? (
            <span className="text-muted">not known</span>
          ) : (
            <Hostile text={agent.owner} />
          )}
        </Fact>
        {agent.description !== undefined && (
          <Fact name="For">
            <Hostile text={agent.description} />
          </Fact>
        )}
        {agent.identity !== undefined && (
          <Fact name="Keyless">
            under <Hostile text={agent.identity.name} /> of{' '}
            {agent.identity.kind === 'identity' ? 'identities' : 'platforms'}, for{' '}
            <Hostile text={[agent.identity.issuer, ...agent.identity.values].join('\n')} />
          </Fact>
        )}
        <Fact name="Last use">
          <Time at={agent.last_used} />
          {agent.last_used_from != null && (
            <>
              {' from '}
              <code>{agent.last_used_from}</code>
            </>
          )}
        </Fact>
        <Fact name="Ends">
          <Life from={agent.created_at} until={agent.expires_at} />
        </Fact>
        <Fact name="Policy">
          {agent.policy === null ? (
            <span className="text-muted">none</span>
          ) : (
            <Link className="text-accent underline" href={paths.policy(agent.policy)}>
              {agent.policy}
            </Link>
          )}
        </Fact>
        <Fact name="Created">
          <Time at={agent.created_at} />
        </Fact>
        {agent.previous_secrets_until !== undefined && (
          <Fact name="Old secrets">
            still accepted; they end <Time at={agent.previous_secrets_until} />
          </Fact>
        )}
        {agent.audiences !== undefined && (
          <Fact name="Audiences">
            <Hostile text={agent.audiences.join('\n')} />
          </Fact>
        )}
        <Fact name="Id">
          <code>{agent.id}</code> <Copy text={agent.id} what="the id" />
        </Fact>
      </Facts>
      <Section title="What it may do">
        <ScopeTree scopes={agent.scopes} />
      </Section>
      <LiveCredentials agent={agent} />
      <SigningKey agent={agent} />
    </>
  )
}

function LiveCredentials({ agent }: { readonly agent: Agent }) {
  const mayList = useMe()?.operations.includes('listCredentials') === true
  const { data, error } = useList(
    'GET /v1/admin/tokens',
    { agent: agent.id, status: 'active', limit: SHOWN },
    { enabled: mayList },
  )
  if (!mayList) return null
  return (
    <Section
      title={agent.live === undefined ? 'What it holds' : `What it holds: ${agent.live} live`}
      aside={
        <Link className="text-sm text-accent underline" href={paths.credentials({ agent: agent.name })}>
          All in Credentials
        </Link>
      }
    >
      {error !== null && <ErrorNote error={error} />}
      {data === undefined && error === null && <Skeleton lines={3} />}
      {data?.length === 0 && <p className="text-muted">Nothing now.</p>}
      <ul>
        {data?.map(({ id, backend, scopes, created_at, expires_at }) => (
          <li
            key={id}
            className="grid grid-cols-[minmax(0,1fr)_minmax(0,2fr)_140px] items-center gap-3 border-b border-line/60 py-1"
          >
            <Link className="truncate text-accent underline" href={paths.credential(id)}>
              {backend}
            </Link>
            <span className="min-w-0 truncate">
              <ScopesLine scopes={scopes} />
            </span>
            <Life from={created_at} until={expires_at} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** The id, and on request the public key, which is found in the listing of all keys. */
function SigningKey({ agent }: { readonly agent: Agent }) {
  const [isAsked, setAsked] = useState(false)
  const mayRead = useMe()?.operations.includes('listAgentKeys') === true
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = useList(
    'GET /v1/admin/keys',
    { limit: 1_000 },
    { enabled: isAsked },
  )
  const key = data?.find(({ agent_id }) => agent_id === agent.id)
  const isOn = isAsked && data !== undefined && key === undefined && hasNextPage && !isFetchingNextPage
  useEffect(() => {
    if (isOn) void fetchNextPage()
  }, [isOn, fetchNextPage])
  if (agent.signing_key_id === null)
    return (
      <Section title="Signing key">
        <p className="text-muted">It gets one when it first asks for it.</p>
      </Section>
    )
  if (agent.signing_key_id === undefined && !mayRead) return null
  return (
    <Section title="Signing key">
      {agent.signing_key_id !== undefined && (
        <p>
          <code>{agent.signing_key_id}</code>{' '}
          <Copy text={agent.signing_key_id} what="the id of the signing key" />
        </p>
      )}
      {mayRead && !isAsked && (
        <Button className="mt-2" onClick={() => setAsked(true)}>
          Show the public key
        </Button>
      )}
      {error !== null && <ErrorNote error={error} />}
      {isAsked && key === undefined && error === null && (data === undefined || hasNextPage) && (
        <Skeleton lines={3} />
      )}
      {isAsked && key === undefined && data !== undefined && !hasNextPage && (
        <p className="text-muted">It has none.</p>
      )}
      {key !== undefined && (
        <div className="mt-2 grid gap-1">
          <p className="text-sm text-muted">
            For commits that it signs as <Hostile text={key.email} most={120} />. Copy it to where signatures
            are checked, such as GitHub.
          </p>
          <Snippet text={key.public_key} what="the public key" />
        </div>
      )}
    </Section>
  )
}
