import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { InvitedOperator, Operator } from '../../../../src/client/wire.ts'
import { useMe, useRefusal } from '../../api/me.ts'
import { refresh, useRead } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Copy } from '../../ui/copy.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { linesOf, TextField } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { Detail } from '../../ui/page.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { SHOWN_ONCE } from '../../ui/shown-once.tsx'
import { Status } from '../../ui/status.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Passkeys } from '../account/passkeys.tsx'
import { Sessions } from '../account/sessions.tsx'
import { Invitation } from './invite.tsx'
import { PersonScopes } from './person-scopes.tsx'

type Act = 'change' | 'invite' | 'sessions' | 'remove'

/** One operator: what they may do, how they log in, and where they are logged in. */
export function PersonDetail({ id }: { readonly id: string }) {
  const [act, setAct] = useState<Act>()
  const [invited, setInvited] = useState<InvitedOperator>()
  const { data, error, refetch } = useRead('GET /v1/admin/operators/:id', { id })
  const [change, invite, end, remove] = [
    useRefusal('changeOperator'),
    useRefusal('inviteOperatorAgain'),
    useRefusal('endSessionsOfOperator'),
    useRefusal('deleteOperator'),
  ]
  const who = data?.name ?? id
  const entry = (name: string, what: Act, refused: string | undefined) => ({
    name,
    group: 'Here' as const,
    run: () => setAct(what),
    refused: data === undefined ? 'There is no such operator.' : refused,
  })
  useEntries([
    entry(`Change ${who}`, 'change', change),
    entry(`Invite ${who} again`, 'invite', invite),
    entry(`End all sessions of ${who}`, 'sessions', end),
    entry(`Remove ${who}`, 'remove', remove),
  ])
  return (
    <Detail
      kind="Operator"
      title={visible(who)}
      back={paths.people()}
      kept={invited === undefined ? undefined : SHOWN_ONCE}
      actions={
        <>
          <Button refused={change} onClick={() => setAct('change')}>
            Change…
          </Button>
          <Button refused={invite} onClick={() => setAct('invite')}>
            Invite again…
          </Button>
          <Button look="danger" refused={end} onClick={() => setAct('sessions')}>
            End all sessions
          </Button>
          <Button look="danger" refused={remove} onClick={() => setAct('remove')}>
            Remove
          </Button>
          <CopyAs
            command={`mayfly operator sessions ls ${data?.email ?? id}`}
            request={`GET /v1/admin/operators/${encodeURIComponent(id)}`}
          />
        </>
      }
    >
      {invited !== undefined && <Invitation made={invited} onDone={() => setInvited(undefined)} />}
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={6} />}
      {data !== undefined && (
        <>
          <PersonFacts person={data} />
          <Passkeys operatorId={data.id} />
          <Sessions operatorId={data.id} />
          {act !== undefined && (
            <Acts person={data} act={act} onClose={() => setAct(undefined)} onInvited={setInvited} />
          )}
        </>
      )}
    </Detail>
  )
}

function PersonFacts({ person }: { readonly person: Operator }) {
  const isMe = useMe()?.id === person.id
  return (
    <Facts>
      <Fact name="E-mail">
        {visible(person.email)} <Copy text={person.email} what="the address" />
      </Fact>
      <Fact name="State">
        {person.joined_at === null ? <Status look="wait">invited</Status> : <Status look="ok">joined</Status>}
        {isMe && (
          <span className="text-muted">
            {' '}
            This is you:{' '}
            <Link className="text-accent underline" href={paths.account()}>
              your account
            </Link>
          </span>
        )}
      </Fact>
      <Fact name="Administers">
        <Scopes scopes={person.scopes} />
      </Fact>
      <Fact name="May grant agents">
        <Scopes scopes={person.backend_scopes} />
      </Fact>
      <Fact name="Last login">
        <Time at={person.last_login} />
      </Fact>
      <Fact name="Invited">
        <Time at={person.created_at} /> by <Hostile text={person.created_by} most={120} />
      </Fact>
      <Fact name="Id">
        <code>{person.id}</code> <Copy text={person.id} what="the id" />
      </Fact>
    </Facts>
  )
}

interface ActsProps {
  readonly person: Operator
  readonly act: Act
  readonly onClose: () => void
  readonly onInvited: (made: InvitedOperator) => void
}

function Acts({ person, act, onClose, onInvited }: ActsProps) {
  const [, go] = useLocation()
  const { id } = person
  const name = visible(person.name)
  if (act === 'change') return <Change person={person} onClose={onClose} />
  if (act === 'invite')
    return (
      <Confirm
        title={`Invite ${name} again?`}
        description="You are shown a link that logs them in once, such as after a lost passkey. The link before ends. You confirm with your passkey."
        action="Make the link"
        isDanger={false}
        onClose={onClose}
        work={async () => {
          onInvited(await admin.operators.inviteAgain(id))
          await refresh('GET /v1/admin/operators')
        }}
      />
    )
  if (act === 'sessions')
    return (
      <Confirm
        title={`End all sessions of ${name}?`}
        description="Every browser in which they are logged in is logged out at once. They can log in again with their passkey."
        action="End the sessions"
        onClose={onClose}
        work={async () => {
          const { ended } = await admin.operators.endSessions(id)
          tell(`${ended} sessions have ended.`)
          await refresh('GET /v1/admin/sessions')
        }}
      />
    )
  return (
    <Confirm
      title={`Remove ${name}?`}
      description="Their sessions, passkeys and links end at once. What they have created and approved stays. You confirm with your passkey."
      action="Remove them"
      onClose={onClose}
      work={async () => {
        await admin.operators.delete(id)
        tell(`${name} is removed.`)
        await refresh('GET /v1/admin/operators')
        go(paths.people())
      }}
    />
  )
}

function Change({ person: present, onClose }: { readonly person: Operator; readonly onClose: () => void }) {
  const [person] = useState(present)
  const [form, setForm] = useState({
    name: person.name,
    scopes: person.scopes.join('\n'),
    backendScopes: person.backend_scopes.join('\n'),
  })
  return (
    <Confirm
      title={`Change ${visible(person.name)}`}
      description="It counts at once, on all nodes. You confirm with your passkey."
      action="Change them"
      isDanger={false}
      isWide
      onClose={onClose}
      work={async () => {
        await admin.operators.update(person.id, {
          name: form.name.trim(),
          scopes: linesOf(form.scopes),
          backend_scopes: linesOf(form.backendScopes),
        })
        tell(`${form.name.trim()} is changed.`)
        await refresh('GET /v1/admin/operators', 'GET /v1/admin/operators/:id')
      }}
    >
      <TextField
        label="Name"
        required
        maxLength={128}
        data-first
        value={form.name}
        onChange={({ target }) => setForm({ ...form, name: target.value })}
      />
      <PersonScopes
        scopes={form.scopes}
        backendScopes={form.backendScopes}
        onChange={(changes) => setForm({ ...form, ...changes })}
      />
    </Confirm>
  )
}
