import { useState } from 'react'
import { Link } from 'wouter'
import type { PendingEnrollment } from '../../../../src/client/wire.ts'
import { useMe, useRefusal } from '../../api/me.ts'
import { useList, useRead } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { visible } from '../../ui/hostile.ts'
import { useKeys } from '../../ui/keys.ts'
import { ErrorNote, Skeleton, Warning } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { Detail } from '../../ui/page.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { Approve, Reject } from './decide.tsx'
import { useExplanation } from './policy-view.tsx'
import { RequestFacts } from './request-facts.tsx'

interface Props {
  readonly id: string
  /** As the list has it, until it is read alone. */
  readonly listed: PendingEnrollment | undefined
  readonly back: string
  readonly onDecided: () => void
}

/** One request: who asks, for what beside what it has, and the decision. */
export function RequestDetail({ id, listed, back, onDecided }: Props) {
  const [deciding, setDeciding] = useState<'approve' | 'edit' | 'reject'>()
  const read = useRead('GET /v1/admin/pending/:id', { id })
  const row = read.data ?? listed
  const explained = useExplanation(row)
  const most = usePolicyLimit(explained.data?.policy ?? undefined)
  const holder = useHolder(row)
  const refusals = useRefusals(row)
  const open = (what: 'approve' | 'edit' | 'reject') => () => {
    const refused = refusals[what]
    if (refused === undefined) setDeciding(what)
    else tell(refused)
  }
  useKeys({ A: open('approve'), E: open('edit'), D: open('reject') })
  useEntries([
    {
      name: 'Approve this request',
      hotkey: 'A',
      group: 'Here',
      run: open('approve'),
      refused: refusals.approve,
    },
    {
      name: 'Approve with fewer scopes, or for less time',
      hotkey: 'E',
      group: 'Here',
      run: open('edit'),
      refused: refusals.edit,
    },
    {
      name: 'Reject this request, with a reason',
      words: 'deny',
      hotkey: 'D',
      group: 'Here',
      run: open('reject'),
      refused: refusals.reject,
    },
  ])
  const close = () => setDeciding(undefined)
  return (
    <Detail
      kind={
        row?.type === 'claim'
          ? 'Agent of a platform'
          : row?.type === 'amendment'
            ? 'Request for more scopes'
            : 'Enrollment'
      }
      title={visible(row?.name ?? '…')}
      back={back}
      actions={
        <>
          <Button look="primary" hotkey="A" refused={refusals.approve} onClick={open('approve')}>
            {row?.type === 'claim' ? 'Give scopes…' : 'Approve'}
          </Button>
          {row?.type !== 'claim' && (
            <Button hotkey="E" refused={refusals.edit} onClick={open('edit')}>
              Approve less…
            </Button>
          )}
          <Button look="danger" hotkey="D" refused={refusals.reject} onClick={open('reject')}>
            Reject…
          </Button>
          <CopyAs
            command={`mayfly pending ${id}\nmayfly approve ${id}${row?.type === 'claim' ? ' --scope SCOPE' : ''}`}
            request={`GET /v1/admin/pending/${id}`}
          />
        </>
      }
    >
      {read.error !== null && <ErrorNote error={read.error} retry={() => void read.refetch()} />}
      {row === undefined && read.error === null && <Skeleton lines={8} />}
      {row !== undefined && (
        <>
          <Missing row={row} />
          <RequestFacts row={row} explained={explained} holder={holder} most={most} />
        </>
      )}
      {row !== undefined && deciding === 'reject' && (
        <Reject row={row} onClose={close} onDecided={onDecided} />
      )}
      {row !== undefined && (deciding === 'approve' || deciding === 'edit') && (
        <Approve
          row={row}
          isEditing={deciding === 'edit'}
          most={most}
          holder={holder}
          onClose={close}
          onDecided={onDecided}
        />
      )}
    </Detail>
  )
}

/** Why this person cannot decide so; undefined: they can. */
function useRefusals(row: PendingEnrollment | undefined) {
  const approve = useRefusal('approveEnrollment')
  const reject = useRefusal('rejectEnrollment')
  const over =
    row === undefined ? 'It is not loaded yet.' : row.status === 'pending' ? undefined : 'It is decided.'
  const lacking =
    row?.may_approve === false ? 'You do not hold all that it asks for: approve less.' : undefined
  const whole = row?.type === 'claim' ? 'It asks for nothing: give it scopes.' : undefined
  return { approve: over ?? approve ?? lacking, edit: over ?? whole ?? approve, reject: over ?? reject }
}

/** The longest life under this policy, where the caller may read it. */
function usePolicyLimit(policy: string | undefined): string | undefined {
  const { data } = useList('GET /v1/admin/policies', {}, { enabled: policy !== undefined })
  return data?.find(({ name }) => name === policy)?.max_agent_lifetime
}

/** The agent that asks for more or came in without rights, or that has the name already. */
function useHolder(row: PendingEnrollment | undefined) {
  const mayRead = useMe()?.operations.includes('getAgent') === true
  const exists = row?.type === 'amendment' || row?.type === 'claim' || row?.name_taken === true
  const asked = { id: row?.name ?? '' }
  return useRead('GET /v1/admin/agents/:name', asked, { enabled: exists && mayRead }).data
}

function Missing({ row }: { readonly row: PendingEnrollment }) {
  if (row.status !== 'pending') return null
  return (
    <>
      {row.missing_scopes !== undefined && row.missing_scopes.length > 0 && (
        <Warning>
          <p className="mb-1">You cannot approve all of it, because you do not hold:</p>
          <Scopes scopes={row.missing_scopes} />
        </Warning>
      )}
      {row.name_taken === true && (
        <Warning>
          <p>
            There is an{' '}
            <Link className="text-accent underline" href={paths.agent(row.name)}>
              agent with this name
            </Link>
            . To approve is to end it first, with all its credentials.
          </p>
        </Warning>
      )}
    </>
  )
}
