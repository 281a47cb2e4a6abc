import { useState } from 'react'
import type { Agent, PendingEnrollment } from '../../../../src/client/wire.ts'
import { useConfirming } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { CheckField, linesOf, TextField } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { LifetimeField } from '../../ui/lifetimes.tsx'
import { Warning } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { ScopesField } from '../../ui/scopes-field.tsx'
import { Time } from '../../ui/time.tsx'
import { approvalOf, type Choice, isAdministering, isClaim, possible } from './approval.ts'
import { Difference } from './difference.tsx'

interface Props {
  readonly row: PendingEnrollment
  readonly onClose: () => void
  /** The server has taken the decision. */
  readonly onDecided: () => void
}

const again = () => refresh('GET /v1/admin/pending', 'GET /v1/admin/pending/:id', 'GET /v1/admin/agents')

interface ApproveProps extends Props {
  /** With a form for fewer scopes, or a shorter time. */
  readonly isEditing: boolean
  /** The longest time that the policy takes. */
  readonly most: string | undefined
  /** The agent that has the name, as far as it is known. */
  readonly holder: Agent | undefined
}

export function Approve({ row, isEditing, most, holder, onClose, onDecided }: ApproveProps) {
  const [choice, setChoice] = useState<Choice>(() => ({
    scopes: new Set(isEditing ? possible(row) : row.scopes),
    given: '',
    lifetime: '',
    note: '',
    isReplacing: false,
  }))
  const name = visible(row.name)
  const isEnrollment = row.type === 'enroll'
  const refused =
    row.name_taken === true && !choice.isReplacing
      ? 'Say that the other agent is to end.'
      : !isEnrollment && (isClaim(row) ? linesOf(choice.given) : [...choice.scopes]).length === 0
        ? 'Choose at least one scope.'
        : undefined
  return (
    <Confirm
      title={isEnrollment ? `Approve ${name}?` : `Give ${name} ${isClaim(row) ? 'scopes' : 'more scopes'}?`}
      description={
        isEnrollment
          ? 'Whoever holds the key with this fingerprint becomes the agent.'
          : isClaim(row)
            ? 'Its next login has them.'
            : 'It can use them at once.'
      }
      action={isClaim(row) ? 'Give these scopes' : isEditing ? 'Approve this much' : 'Approve'}
      isDanger={false}
      refused={refused}
      onClose={onClose}
      work={async () => {
        await admin.pending.approve(row.id, approvalOf(row, choice))
        await again()
        tell(`${name} is approved.`)
        onDecided()
      }}
    >
      {isClaim(row) && <Given choice={choice} onChange={setChoice} />}
      {isEditing || isClaim(row) ? (
        <Choices row={row} choice={choice} most={most} onChange={setChoice} />
      ) : (
        <Difference row={row} />
      )}
      {isEnrollment && row.public_key_fingerprint !== null && (
        <p className="text-sm">
          <span className="text-muted">Key fingerprint </span>
          <code className="break-all">{row.public_key_fingerprint}</code>
        </p>
      )}
      {row.name_taken === true && (
        <Replace
          name={name}
          holder={holder}
          isReplacing={choice.isReplacing}
          onChange={(isReplacing) => setChoice({ ...choice, isReplacing })}
        />
      )}
    </Confirm>
  )
}

interface ChoicesProps {
  readonly row: PendingEnrollment
  readonly choice: Choice
  readonly most: string | undefined
  readonly onChange: (choice: Choice) => void
}

function Choices({ row, choice, most, onChange }: ChoicesProps) {
  const { added = [], impossible = [] } = row.difference ?? {}
  const hintOf = (scope: string) =>
    impossible.includes(scope)
      ? 'leads nowhere'
      : row.difference !== undefined && !added.includes(scope)
        ? 'it has it already'
        : undefined
  const toggle = (scope: string) => {
    const scopes = new Set(choice.scopes)
    if (!scopes.delete(scope)) scopes.add(scope)
    onChange({ ...choice, scopes })
  }
  return (
    <>
      {!isClaim(row) && (
        <fieldset className="grid gap-1.5">
          <legend className="mb-1 text-sm font-medium">Scopes</legend>
          {row.scopes.length === 0 && <p className="text-muted">It asks for none.</p>}
          {row.scopes.map((scope) => (
            <CheckField
              key={scope}
              label={<code className="[overflow-wrap:anywhere]">{visible(scope)}</code>}
              hint={hintOf(scope)}
              checked={choice.scopes.has(scope)}
              onChange={() => toggle(scope)}
            />
          ))}
        </fieldset>
      )}
      <LifetimeField
        label={row.type === 'enroll' ? 'How long the agent lives' : 'How long it has them'}
        value={choice.lifetime}
        onChange={(lifetime) => onChange({ ...choice, lifetime })}
        none={row.expires_in !== undefined ? `${row.expires_in}, as requested` : (most ?? 'without end')}
        most={most}
      />
      <TextField
        label="Note"
        hint="For the record; the agent does not see it."
        maxLength={1_024}
        value={choice.note}
        onChange={({ target }) => onChange({ ...choice, note: target.value })}
      />
    </>
  )
}

/** An agent of a platform asks for nothing: a person says what it gets. */
function Given({ choice, onChange }: Pick<ChoicesProps, 'choice' | 'onChange'>) {
  const confirming = useConfirming()
  return (
    <>
      <ScopesField
        label="Scopes"
        value={choice.given}
        isFirst
        onChange={(given) => onChange({ ...choice, given })}
      />
      {isAdministering(linesOf(choice.given)) && (
        <Warning>With an admin scope it administers Mayfly itself. {confirming}</Warning>
      )}
    </>
  )
}

interface ReplaceProps {
  readonly name: string
  readonly holder: Agent | undefined
  readonly isReplacing: boolean
  readonly onChange: (isReplacing: boolean) => void
}

/** The name is that of an agent that lives: approving ends it. */
function Replace({ name, holder, isReplacing, onChange }: ReplaceProps) {
  const confirming = useConfirming()
  return (
    <div className="grid gap-2">
      <Warning>
        There is an agent {name} already
        {holder !== undefined && (
          <>
            {holder.live !== undefined && `, with ${holder.live} live credentials`}, last used{' '}
            <Time at={holder.last_used} />
          </>
        )}
        . If this is not the same machine after a loss of its key, reject.
      </Warning>
      <CheckField
        label={`End the present agent ${name} and all its credentials`}
        hint={`It cannot be undone. ${confirming}`}
        checked={isReplacing}
        onChange={({ target }) => onChange(target.checked)}
      />
    </div>
  )
}

export function Reject({ row, onClose, onDecided }: Props) {
  const [reason, setReason] = useState('')
  const name = visible(row.name)
  return (
    <Confirm
      title={`Reject ${name}?`}
      description={
        isClaim(row)
          ? 'It stays an agent without rights, and does not wait here again while it lives.'
          : row.type === 'enroll'
            ? 'It does not become an agent. It may ask again.'
            : 'It keeps what it has.'
      }
      action="Reject"
      onClose={onClose}
      work={async () => {
        await admin.pending.reject(row.id, reason.trim() === '' ? {} : { reason: reason.trim() })
        await again()
        tell(`${name} is rejected.`)
        onDecided()
      }}
    >
      <TextField
        label="Reason"
        hint={isClaim(row) ? 'For the record.' : 'Whoever asked is shown it.'}
        maxLength={1_024}
        value={reason}
        data-first
        onChange={({ target }) => setReason(target.value)}
      />
    </Confirm>
  )
}
