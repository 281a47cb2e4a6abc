import { useState } from 'react'
import { Link } from 'wouter'
import { isNotFound } from '../../api/failure.ts'
import { useRefusal } from '../../api/me.ts'
import { refresh, useRead } from '../../api/queries.ts'
import { request } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Copy } from '../../ui/copy.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Empty, ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { Detail } from '../../ui/page.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { Happened } from './happened.tsx'
import { Requests } from './requests.tsx'
import { heartbeatMs, isOwnEnd, nextLook, personOf, type Run, sentenceOf } from './run.ts'
import { RunStatus } from './status.tsx'
import { Timeline } from './timeline.tsx'

const ROUTE = 'GET /v1/admin/runs/:id'

/** One run: who works and for what, what was issued for it, and when and why it ended, or will. */
export function RunDetail({ id, back }: { readonly id: string; readonly back: string }) {
  const [isEnding, setEnding] = useState(false)
  const { data, error, refetch } = useRead(
    ROUTE,
    { id },
    { refetchInterval: (run) => nextLook(run, Date.now()) },
  )
  const may = useRefusal('endAnyRun')
  const refused =
    data?.state === 'ended' ? 'It has ended.' : data === undefined ? 'There is no such run.' : may
  useEntries([
    {
      name: `End the run ${id}`,
      words: 'stop kill revoke',
      group: 'Here',
      run: () => setEnding(true),
      refused,
    },
  ])
  const isGone = data === undefined && isNotFound(error)
  return (
    <Detail
      kind="Run"
      title={<code className="text-base">{visible(id)}</code>}
      back={back}
      actions={
        <>
          <Button look="danger" refused={refused} onClick={() => setEnding(true)}>
            End this run
          </Button>
          <ButtonLink href={paths.activity({ run: id })}>Its activity</ButtonLink>
          <CopyAs
            command={`mayfly runs show ${id}`}
            request={`GET /v1/admin/runs/${encodeURIComponent(id)}`}
          />
        </>
      }
    >
      {isGone && (
        <Empty title="No run has this id">It may have ended longer ago than the server keeps runs.</Empty>
      )}
      {error !== null && !isGone && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data !== undefined && (
        <>
          <RunFacts run={data} />
          <Timeline run={data} />
          <Requests run={data} />
          <Happened run={data} />
        </>
      )}
      {isEnding && data !== undefined && <EndRun run={data} onClose={() => setEnding(false)} />}
    </Detail>
  )
}

function EndRun({ run: { id, agent }, onClose }: { readonly run: Run; readonly onClose: () => void }) {
  return (
    <Confirm
      title={`End this run of ${visible(agent.name)}?`}
      description="All that was issued for it ends at once, and its program is told to stop when it next says that it lives. It cannot be undone."
      action="End the run"
      onClose={onClose}
      work={async () => {
        await request('DELETE /v1/admin/runs/:id', { id })
        tell('The run has ended, with its credentials.')
        await refresh('GET /v1/admin/runs', ROUTE, 'GET /v1/admin/tokens', 'GET /v1/admin/audit')
      }}
    />
  )
}

function RunFacts({ run }: { readonly run: Run }) {
  return (
    <Facts>
      <Fact name="State">
        <RunStatus run={run} />
      </Fact>
      <Fact name="Agent">
        <Link className="text-accent underline" href={paths.agent(run.agent.name)}>
          {visible(run.agent.name)}
        </Link>
      </Fact>
      <Fact name="For">
        {run.purpose === null ? <span className="text-muted">not said</span> : <Hostile text={run.purpose} />}
      </Fact>
      {run.dead_at === null ? <Ended run={run} /> : <Lives run={run} deadAt={run.dead_at} />}
      <Fact name="Started">
        <Time at={run.started_at} />
        {run.ip_address !== null && (
          <>
            {' from '}
            <code>{run.ip_address}</code>
          </>
        )}
      </Fact>
      {run.user_agent !== null && (
        <Fact name="User agent">
          <Hostile text={run.user_agent} />
        </Fact>
      )}
      <Fact name="Id">
        <code>{run.id}</code> <Copy text={run.id} what="the id" />
      </Fact>
    </Facts>
  )
}

function Lives({ run, deadAt }: { readonly run: Run; readonly deadAt: string }) {
  return (
    <>
      <Fact name="Dead in">
        <Life from={run.last_beat} until={deadAt} soonMs={1.5 * heartbeatMs(run)} />
        <span className="block text-muted">unless it says that it lives, every {run.heartbeat}</span>
      </Fact>
      <Fact name="Last beat">
        <Time at={run.last_beat} />
      </Fact>
      {run.expires_at !== null && (
        <Fact name="Ends in any case">
          <Life from={run.started_at} until={run.expires_at} />
        </Fact>
      )}
    </>
  )
}

function Ended({ run }: { readonly run: Run }) {
  return (
    <>
      <Fact name="Ended">
        <Time at={run.ended_at} />
        {run.reason !== null && (
          <>
            {'. '}
            {sentenceOf(run.reason)} <code className="text-xs text-muted">{run.reason}</code>
          </>
        )}
      </Fact>
      {run.ended_by !== null && !isOwnEnd(run.reason) && (
        <Fact name="Who ended it">
          <Hostile text={personOf(run.ended_by)} />
        </Fact>
      )}
      <Fact name="Last beat">
        <Time at={run.last_beat} /> <span className="text-muted">of one every {run.heartbeat}</span>
      </Fact>
    </>
  )
}
