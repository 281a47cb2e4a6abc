import { Link } from 'wouter'
import type { AuditEntry } from '../../../../src/client/wire.ts'
import { useRead } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Copy } from '../../ui/copy.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Empty, ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Detail } from '../../ui/page.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { Status } from '../../ui/status.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { exact } from '../../ui/times.ts'
import { placeAfter } from './query.ts'
import { actorOf, lookOf, wordsOf } from './words.ts'

interface Props {
  readonly id: string
  /** If the list has it. */
  readonly known: AuditEntry | undefined
  readonly back: string
}

/** One entry of the audit, with all its fields. */
export function EntryDetail({ id, known, back }: Props) {
  const cursor = placeAfter(id)
  const isAsked = known === undefined && cursor !== undefined
  const query = { cursor, limit: 1 }
  const { data, error, refetch } = useRead('GET /v1/admin/audit', { query }, { enabled: isAsked })
  const entry = known ?? data?.find((one) => one.id === id)
  const isMissing = cursor === undefined || (data !== undefined && entry === undefined)
  return (
    <Detail
      kind="Entry of the audit"
      title={
        entry === undefined ? (
          <code className="text-base">{visible(id)}</code>
        ) : (
          visible(wordsOf(entry.action))
        )
      }
      back={back}
      actions={entry === undefined ? undefined : <EntryActions entry={entry} cursor={cursor} />}
    >
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {entry === undefined && !isMissing && error === null && <Skeleton lines={8} />}
      {entry === undefined && isMissing && (
        <Empty title="No entry has this id">It may be older than what the server keeps.</Empty>
      )}
      {entry !== undefined && <EntryFacts entry={entry} />}
    </Detail>
  )
}

function EntryActions({
  entry,
  cursor,
}: {
  readonly entry: AuditEntry
  readonly cursor: string | undefined
}) {
  const { agent_name, credential_id, run, actor } = entry
  return (
    <>
      {credential_id !== null && (
        <ButtonLink href={paths.activity({ credential: credential_id })}>Story of the credential</ButtonLink>
      )}
      {run !== null && <ButtonLink href={paths.activity({ run })}>All of this run</ButtonLink>}
      {agent_name !== null && (
        <ButtonLink href={paths.activity({ agent: agent_name })}>All of this agent</ButtonLink>
      )}
      <ButtonLink href={paths.activity({ actor })}>All that this one did</ButtonLink>
      <CopyAs
        command={
          entry.details?.['confirmation'] === undefined
            ? `mayfly audit --action ${entry.action} --since ${entry.timestamp} --until ${entry.timestamp} --json`
            : `mayfly audit verify-confirmation ${entry.id}`
        }
        request={`GET /v1/admin/audit?cursor=${cursor}&limit=1`}
      />
    </>
  )
}

const LINK = 'text-accent underline underline-offset-2 decoration-accent/40 hover:decoration-accent'

function EntryFacts({ entry }: { readonly entry: AuditEntry }) {
  const { agent_id, agent_name, backend, credential_id, metadata, details } = entry
  return (
    <>
      <Facts>
        <Fact name="Outcome">
          <Status look={lookOf(entry)}>{entry.outcome}</Status>
        </Fact>
        <Fact name="When">
          {exact(Date.parse(entry.timestamp))}{' '}
          <span className="text-muted">
            (<Time at={entry.timestamp} />)
          </span>
        </Fact>
        <Fact name="Action">
          <code>{visible(entry.action)}</code>
        </Fact>
        <Fact name="Who did it">
          <Hostile text={actorOf(entry)} />
          {actorOf(entry) !== entry.actor && (
            <span className="text-muted">
              {' '}
              (<code>{visible(entry.actor)}</code>)
            </span>
          )}
        </Fact>
        {agent_id !== null && (
          <Fact name="Agent">
            <Link className={LINK} href={paths.agent(agent_name ?? agent_id)}>
              {visible(agent_name ?? agent_id)}
            </Link>{' '}
            <code className="text-muted">{visible(agent_id)}</code>
          </Fact>
        )}
        {backend !== null && (
          <Fact name="Backend">
            <Link className={LINK} href={paths.backend(backend)}>
              {visible(backend)}
            </Link>
          </Fact>
        )}
        {credential_id !== null && (
          <Fact name="Credential">
            <Link className={LINK} href={paths.credential(credential_id)}>
              <code>{visible(credential_id)}</code>
            </Link>
          </Fact>
        )}
        {entry.run !== null && (
          <Fact name="Run">
            <Link className={LINK} href={paths.run(entry.run)}>
              <code>{visible(entry.run)}</code>
            </Link>
          </Fact>
        )}
        {entry.scopes !== null && (
          <Fact name="Scopes">
            <Scopes scopes={entry.scopes} />
          </Fact>
        )}
        <Text name="Lifetime" text={entry.ttl} />
        <Text name="From" text={entry.ip_address} />
        <Text name="User agent" text={entry.user_agent} />
        <Text name="Authenticated by" text={entry.auth_method} />
        <Text name="Request" text={entry.request_id} />
        <Fact name="Id">
          <code>{visible(entry.id)}</code> <Copy text={entry.id} what="the id" />
        </Fact>
      </Facts>
      {details !== null && <Json title="Details" value={details} />}
      {metadata !== null && <Json title="Metadata of the request" value={metadata} />}
    </>
  )
}

function Text({ name, text }: { readonly name: string; readonly text: string | null }) {
  if (text === null) return null
  return (
    <Fact name={name}>
      <Hostile text={text} />
    </Fact>
  )
}

/** What the action or the request brought along, as it is. */
function Json({ title, value }: { readonly title: string; readonly value: unknown }) {
  const text = JSON.stringify(value, null, 2)
  return (
    <Section title={title} aside={<Copy text={text} what={title.toLowerCase()} />}>
      <div className="rounded-sm border border-line bg-sunken px-3 py-2 font-mono text-xs leading-5">
        <Hostile text={text} most={2_000} />
      </div>
    </Section>
  )
}
