import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Backend, Kind } from '../../../../src/client/wire.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { visible } from '../../ui/hostile.ts'
import { Empty, ErrorNote, Skeleton, Warning } from '../../ui/notes.tsx'
import { Detail } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { endOf, useKindList } from '../kinds/use-kinds.ts'
import { BackendForm, type Filled } from './backend-form.tsx'
import { ChooseKind } from './choose-kind.tsx'
import { fieldsOfKind, withoutSecrets } from './form.ts'
import { Trial } from './trial.tsx'

interface Props {
  /** Undefined: it is still to be chosen. */
  readonly kind: string | undefined
  readonly back: string
}

/** Adds a backend: the kind, then its form, then "does it work?". */
export function AddBackend({ kind: type, back }: Props) {
  const list = useKindList()
  const kind = list.data?.find((one) => one.type === type)
  if (kind !== undefined) return <AddOfKind key={kind.type} kind={kind} back={back} />
  return (
    <Detail kind="Add a backend" title="Choose its kind" back={back}>
      {list.error !== null ? (
        <ErrorNote error={list.error} retry={() => void list.refetch()} />
      ) : list.data === undefined ? (
        <Skeleton lines={12} />
      ) : type === undefined ? (
        <ChooseKind kinds={list.data} />
      ) : (
        <Empty title="There is no such kind">
          <Link className="text-accent underline" href={paths.newBackend()}>
            Choose another
          </Link>
        </Empty>
      )}
    </Detail>
  )
}

function AddOfKind({ kind, back }: { readonly kind: Kind; readonly back: string }) {
  const [, go] = useLocation()
  const [made, setMade] = useState<Backend>()
  if (made !== undefined) return <Added backend={made} kind={kind} back={back} />
  const fields = fieldsOfKind(kind)
  const bodyOf = ({ name, config, rules }: Filled) => ({ type: kind.type, name, config, ...rules })
  return (
    <Detail
      kind="Add a backend"
      title={visible(kind.title)}
      back={back}
      actions={<ButtonLink href={paths.newBackend()}>Another kind</ButtonLink>}
    >
      <p className="text-muted">A credential of this kind {endOf(kind.revocation)}.</p>
      <BackendForm
        fields={fields}
        defaultName={kind.type}
        action="Add it"
        onClose={() => go(back)}
        onSubmit={async (filled) => {
          setMade(await admin.backends.create(bodyOf(filled), filled.isChecked ? {} : { check: false }))
          await refresh('GET /v1/admin/backends')
        }}
        preview={(filled) => (
          <CopyAs
            command={`mayfly backend add ${kind.type} ${filled.name}`}
            request="POST /v1/admin/backends"
            body={{ ...bodyOf(filled), config: withoutSecrets(fields, filled.config) }}
          />
        )}
      />
    </Detail>
  )
}

/** What comes next, once it is there. */
function Added({
  backend,
  kind,
  back,
}: {
  readonly backend: Backend
  readonly kind: Kind
  readonly back: string
}) {
  const [, go] = useLocation()
  return (
    <Detail
      kind="Backend"
      title={visible(backend.name)}
      back={back}
      actions={
        <>
          <Button look="primary" onClick={() => go(paths.backend(backend.name))}>
            Open it
          </Button>
          <Button onClick={() => go(paths.newAgent())}>Create an agent for it</Button>
          <Button onClick={() => go(paths.newBackend())}>Add another</Button>
        </>
      }
    >
      <div role="status">
        <Status look="ok">It is stored.</Status>
      </div>
      {backend.warnings?.map((one) => (
        <Warning key={one}>{visible(one)}</Warning>
      ))}
      <h3 className="text-sm">Does it work from end to end?</h3>
      <Trial name={backend.name} examples={kind.scopes.examples} allowed={backend.allowed_scopes} />
    </Detail>
  )
}
