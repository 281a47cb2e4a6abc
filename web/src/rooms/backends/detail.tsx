import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Backend } from '../../../../src/client/wire.ts'
import { isNotFound } from '../../api/failure.ts'
import { useRefusal } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { paths, withQuery } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { EndAll } from '../../ui/end-all.tsx'
import { Section } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Empty, ErrorNote, Skeleton, Warning } from '../../ui/notes.tsx'
import { Detail } from '../../ui/page.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { Time } from '../../ui/time.tsx'
import { useKind } from '../kinds/use-kinds.ts'
import { ChangeBackend } from './change.tsx'
import { BackendChecks } from './checks.tsx'
import { ShownConfig } from './config.tsx'
import { DeleteBackend } from './delete.tsx'
import { BackendHealth } from './health.tsx'
import { Reconcile } from './reconcile.tsx'
import { RotateRoot } from './rotate-root.tsx'
import { BackendRules } from './rules.tsx'
import { ScopeForms } from './scope-forms.tsx'
import { Trial } from './trial.tsx'
import { ShownUses } from './uses.tsx'

type Doing = 'delete' | 'rotate' | 'end'

interface Props {
  readonly name: string
  readonly isChanging: boolean
  readonly back: string
}

/** One backend: whether it works, what it gives, how it is set, and what can be done about it. */
export function BackendDetail({ name, isChanging, back }: Props) {
  const [, go] = useLocation()
  const [doing, setDoing] = useState<Doing>()
  const { data, error, refetch } = useRead(
    'GET /v1/admin/backends/:name',
    { id: name },
    { refetchInterval: 5_000 },
  )
  const may = {
    change: useRefusal('changeBackend'),
    delete: useRefusal('deleteBackend'),
    rotate: useRefusal('rotateRoot'),
    end: useRefusal('revokeCredentials'),
  }
  const isEnding = data?.deletion === undefined ? undefined : 'It is being deleted.'
  const hasSecret = data === undefined || data.health?.secret_since !== undefined
  const refused = {
    change: isEnding ?? may.change,
    delete: may.delete,
    rotate: isEnding ?? (hasSecret ? may.rotate : 'Its configuration has no secret.'),
  }
  const stop = () => setDoing(undefined)
  const change = () => go(withQuery(paths.backend(name), { change: '1' }))
  useEntries([
    {
      name: `Change the backend ${name}`,
      group: 'Here',
      run: change,
      refused: refused.change,
    },
    {
      name: `Delete the backend ${name}`,
      group: 'Here',
      run: () => setDoing('delete'),
      refused: refused.delete,
    },
    {
      name: `End all credentials of ${name}`,
      words: 'revoke',
      group: 'Here',
      run: () => setDoing('end'),
      refused: may.end,
    },
    {
      name: `Replace the secret of ${name}`,
      words: 'rotate root',
      group: 'Here',
      run: () => setDoing('rotate'),
      refused: refused.rotate,
    },
  ])
  if (isChanging && data !== undefined) return <ChangeBackend backend={data} />
  return (
    <Detail
      kind="Backend"
      title={visible(data?.name ?? name)}
      back={back}
      actions={
        <>
          <Button refused={refused.change} onClick={change}>
            Change
          </Button>
          <Button refused={refused.rotate} onClick={() => setDoing('rotate')}>
            Replace its secret
          </Button>
          <Button look="danger" refused={may.end} onClick={() => setDoing('end')}>
            End all credentials
          </Button>
          <Button look="danger" refused={refused.delete} onClick={() => setDoing('delete')}>
            Delete
          </Button>
          <CopyAs command={`mayfly backend show ${name}`} request={`GET /v1/admin/backends/${name}`} />
        </>
      }
    >
      {isNotFound(error) ? (
        <Empty title="There is no backend of this name">Perhaps it was deleted.</Empty>
      ) : (
        error !== null && <ErrorNote error={error} retry={() => void refetch()} />
      )}
      {data === undefined && error === null && <Skeleton lines={8} />}
      {data !== undefined && !isNotFound(error) && <Parts backend={data} />}
      {doing === 'delete' && data !== undefined && (
        <DeleteBackend backend={data} onClose={stop} onGone={() => go(back)} />
      )}
      {doing === 'end' && <EndAll agent={undefined} backend={name} onClose={stop} />}
      {doing === 'rotate' && data !== undefined && <RotateRoot backend={data} onClose={stop} />}
    </Detail>
  )
}

function Parts({ backend }: { readonly backend: Backend }) {
  const kind = useKind(backend.type)
  const { deletion, allowed_scopes } = backend
  return (
    <>
      {deletion !== undefined && (
        <Warning>
          It is being deleted since <Time at={deletion.since} />: {deletion.remaining.toLocaleString('en')}{' '}
          credentials have not ended yet. It goes on whether you stay here or not.
        </Warning>
      )}
      {backend.warnings?.map((one) => (
        <Warning key={one}>{visible(one)}</Warning>
      ))}
      {backend.description !== undefined && <p>{visible(backend.description)}</p>}
      <BackendHealth backend={backend} />
      <div>
        <Section title="Does it work?">
          <div className="grid gap-4">
            <BackendChecks name={backend.name} />
            <Trial name={backend.name} examples={kind?.scopes.examples ?? []} allowed={allowed_scopes} />
          </div>
        </Section>
        <Section
          title="Scopes"
          aside={
            <Link className="text-xs text-accent underline" href={paths.kind(backend.type)}>
              The kind {backend.type}
            </Link>
          }
        >
          <ScopeForms backend={backend.name} forms={backend.scope_forms} help={kind?.scopes.help} />
          {allowed_scopes !== undefined && (
            <div className="mt-3 grid gap-1">
              <p className="text-muted">Of these, it issues only</p>
              <Scopes scopes={allowed_scopes} />
            </div>
          )}
        </Section>
        <Section title="Rules">
          <BackendRules backend={backend} />
        </Section>
        <Section title="Configuration">
          <ShownConfig config={backend.config} kind={kind} />
        </Section>
        <Section title="What the proxy may do with its secrets">
          <ShownUses uses={backend.uses} />
        </Section>
        <Section title="Left over at the upstream">
          <Reconcile name={backend.name} isExact={backend.revocation === 'exact'} />
        </Section>
      </div>
    </>
  )
}
