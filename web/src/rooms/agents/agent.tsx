import { useState } from 'react'
import { useLocation } from 'wouter'
import type { Agent, RotatedAgent } from '../../../../src/client/wire.ts'
import { useConfirming, useRefusal } from '../../api/me.ts'
import { refresh, useRead } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { EndAll } from '../../ui/end-all.tsx'
import { visible } from '../../ui/hostile.ts'
import { LifetimeField } from '../../ui/lifetimes.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { Detail } from '../../ui/page.tsx'
import { SHOWN_ONCE } from '../../ui/shown-once.tsx'
import { word } from '../../ui/word.ts'
import { AgentFacts } from './agent-facts.tsx'
import { Change } from './change.tsx'
import { Secrets } from './secrets.tsx'

type Act = 'change' | 'rotate' | 'end' | 'delete'

/** One agent: what it may do, what it holds, and all that can be done to it. */
export function AgentDetail({ name, back }: { readonly name: string; readonly back: string }) {
  const [act, setAct] = useState<Act>()
  const [made, setMade] = useState<RotatedAgent>()
  const { data, error, refetch } = useRead('GET /v1/admin/agents/:name', { id: name })
  const [change, mayRotate, end, remove] = [
    useRefusal('changeAgent'),
    useRefusal('rotateAgent'),
    useRefusal('revokeCredentials'),
    useRefusal('deleteAgent'),
  ]
  const rotate = data?.identity === undefined ? mayRotate : 'It has no secrets: it logs in without.'
  const entry = (title: string, what: Act, refused: string | undefined, words = '') => ({
    name: `${title} ${name}`,
    words,
    group: 'Here' as const,
    run: () => setAct(what),
    refused: data === undefined ? 'There is no such agent.' : refused,
  })
  useEntries([
    entry('Change', 'change', change, 'scopes expiry owner description audiences'),
    entry('Rotate the secrets of', 'rotate', rotate, 'token'),
    entry('End all credentials of', 'end', end, 'revoke'),
    entry('Delete', 'delete', remove, 'remove'),
  ])
  return (
    <Detail
      kind="Agent"
      title={visible(data?.name ?? name)}
      back={back}
      kept={made === undefined ? undefined : SHOWN_ONCE}
      actions={
        <>
          <Button refused={change} onClick={() => setAct('change')}>
            Change…
          </Button>
          <Button refused={rotate} onClick={() => setAct('rotate')}>
            Rotate…
          </Button>
          <Button look="danger" refused={end} onClick={() => setAct('end')}>
            End all credentials
          </Button>
          <Button look="danger" refused={remove} onClick={() => setAct('delete')}>
            Delete
          </Button>
          <ButtonLink href={paths.runs({ agent: name })}>Its runs</ButtonLink>
          <ButtonLink href={paths.activity({ agent: name })}>Its activity</ButtonLink>
          <CopyAs
            command={`mayfly agent show ${word(name)}`}
            request={`GET /v1/admin/agents/${encodeURIComponent(name)}`}
          />
        </>
      }
    >
      {made !== undefined && <Secrets made={made} onDone={() => setMade(undefined)} />}
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data !== undefined && <AgentFacts agent={data} />}
      {data !== undefined && act !== undefined && (
        <Acts agent={data} act={act} onClose={() => setAct(undefined)} onRotated={setMade} />
      )}
    </Detail>
  )
}

interface ActsProps {
  readonly agent: Agent
  readonly act: Act
  readonly onClose: () => void
  readonly onRotated: (made: RotatedAgent) => void
}

function Acts({ agent, act, onClose, onRotated }: ActsProps) {
  const [, go] = useLocation()
  const confirming = useConfirming()
  const { name, live } = agent
  if (act === 'change') return <Change agent={agent} onClose={onClose} />
  if (act === 'rotate') return <Rotate name={name} onClose={onClose} onRotated={onRotated} />
  if (act === 'end') return <EndAll agent={name} backend={undefined} onClose={onClose} />
  const held = live === undefined || live === 0 ? 'All that it holds' : `What it holds, ${live} credentials,`
  return (
    <Confirm
      title={`Delete the agent ${name}?`}
      description={`Its login ends at once. ${held} ends, too. It cannot be undone. ${confirming}`}
      action="Delete the agent"
      onClose={onClose}
      work={async () => {
        await admin.agents.delete(name)
        tell(`${name} is deleted.`)
        await refresh('GET /v1/admin/agents', 'GET /v1/admin/tokens')
        go(paths.agents())
      }}
    />
  )
}

interface RotateProps {
  readonly name: string
  readonly onClose: () => void
  readonly onRotated: (made: RotatedAgent) => void
}

function Rotate({ name, onClose, onRotated }: RotateProps) {
  const [grace, setGrace] = useState('')
  return (
    <Confirm
      title={`Replace the secrets of ${name}?`}
      description="It gets a new token and client secret, which you are shown once. It keeps its id, its scopes and what it holds."
      action="Replace them"
      onClose={onClose}
      work={async () => {
        const made = await admin.agents.rotate(name, grace === '' ? {} : { grace })
        onRotated(made)
        await refresh('GET /v1/admin/agents/:name')
      }}
    >
      <LifetimeField
        label="How long the old ones are still accepted"
        value={grace}
        onChange={setGrace}
        none="not at all: they end now"
      />
    </Confirm>
  )
}
