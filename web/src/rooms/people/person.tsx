import { useState } from 'react'
import { useLocation } from 'wouter'
import type { InvitedOperator, Operator } from '../../../../src/client/wire.ts'
import { useConfirming, useRefusal } from '../../api/me.ts'
import { refresh, useRead } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { linesOf, TextField } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { Detail } from '../../ui/page.tsx'
import { SHOWN_ONCE } from '../../ui/shown-once.tsx'
import { Passkeys } from '../account/passkeys.tsx'
import { Sessions } from '../account/sessions.tsx'
import { Invitation } from './invite.tsx'
import { PersonFacts } from './person-facts.tsx'
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
  // The groups at their provider say what they may do, and the provider lets them in.
  const isOfSso = data?.sso != null
  const entry = (name: string, what: Act, refused: string | undefined) => ({
    name,
    group: 'Here' as const,
    run: () => setAct(what),
    refused: data === undefined ? 'There is no such operator.' : refused,
  })
  useEntries([
    ...(isOfSso
      ? []
      : [entry(`Change ${who}`, 'change', change), entry(`Invite ${who} again`, 'invite', invite)]),
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
          {!isOfSso && (
            <>
              <Button refused={change} onClick={() => setAct('change')}>
                Change…
              </Button>
              <Button refused={invite} onClick={() => setAct('invite')}>
                Invite again…
              </Button>
            </>
          )}
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
          {!isOfSso && <Passkeys operatorId={data.id} />}
          <Sessions operatorId={data.id} />
          {act !== undefined && (
            <Acts person={data} act={act} onClose={() => setAct(undefined)} onInvited={setInvited} />
          )}
        </>
      )}
    </Detail>
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
  const confirming = useConfirming()
  const { id, sso } = person
  const name = visible(person.name)
  if (act === 'change') return <Change person={person} onClose={onClose} />
  if (act === 'invite')
    return (
      <Confirm
        title={`Invite ${name} again?`}
        description={`You are shown a link that logs them in once, such as after a lost passkey. The link before ends. ${confirming}`}
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
        description={`Every browser and every command in which they are logged in is logged out at once. They can log in again ${sso == null ? 'with their passkey' : `with ${sso.provider}`}.`}
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
      description={`${
        sso == null
          ? 'Their sessions, commands, passkeys and links end at once.'
          : `Their sessions and commands end at once. They can log in again as long as their groups at ${sso.provider} give them something here: to keep them out, take them out of those groups first.`
      } What they have created and approved stays. ${confirming}`}
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
  const confirming = useConfirming()
  const [form, setForm] = useState({
    name: person.name,
    scopes: person.scopes.join('\n'),
    backendScopes: person.backend_scopes.join('\n'),
  })
  return (
    <Confirm
      title={`Change ${visible(person.name)}`}
      description={`It counts at once, on all nodes. ${confirming}`}
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
