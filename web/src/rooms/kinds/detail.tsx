import { useState } from 'react'
import { Link } from 'wouter'
import type { Plugin } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths, withQuery } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Copy } from '../../ui/copy.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Empty, ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { Detail } from '../../ui/page.tsx'
import { Prose } from '../../ui/prose.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { fieldsOfKind } from '../backends/form.ts'
import { ScopeForms } from '../backends/scope-forms.tsx'
import { endOf, type KindRow } from './use-kinds.ts'

interface Props {
  readonly type: string
  readonly row: KindRow | undefined
  readonly isLoaded: boolean
  readonly back: string
}

/** One kind: what a credential of it may do, what configures it, and which bytes it is. */
export function KindDetail({ type, row, isLoaded, back }: Props) {
  return (
    <Detail
      kind="Kind"
      title={visible(row?.title ?? type)}
      back={back}
      actions={
        <>
          {row !== undefined && (
            <ButtonLink href={paths.newBackend(type)}>Add a backend of this kind</ButtonLink>
          )}
          <CopyAs command={`mayfly kind show ${type}`} request="GET /v1/admin/kinds" />
        </>
      }
    >
      {row === undefined ? (
        isLoaded ? (
          <Empty title="There is no such kind">A plugin that was removed takes its kind with it.</Empty>
        ) : (
          <Skeleton lines={8} />
        )
      ) : (
        <Parts row={row} />
      )}
    </Detail>
  )
}

function Parts({ row }: { readonly row: KindRow }) {
  const environment = Object.entries(row.environment ?? {})
  return (
    <>
      <Facts>
        <Fact name="Kind">
          <code>{visible(row.type)}</code>
        </Fact>
        <Fact name="When revoked">a credential {endOf(row.revocation)}</Fact>
        {row.recovery === 'none' && (
          <Fact name="After a crash">
            what an interrupted issue left upstream cannot be found; nobody has received it, and it lasts
            until its expiry
          </Fact>
        )}
        <Fact name="Backends">
          <Link className="text-accent underline" href={withQuery(paths.backends(), { kind: row.type })}>
            Those of this kind
          </Link>
        </Fact>
      </Facts>
      <div>
        {row.plugin?.builtin === false && <PluginFacts plugin={row.plugin} />}
        <Section title="Scopes">
          <ScopeForms forms={row.scopes.forms} help={row.scopes.help} />
        </Section>
        {environment.length > 0 && (
          <Section title="Variables that mayfly run sets">
            <Facts>
              {environment.map(([name, value]) => (
                <Fact key={name} name={visible(name)}>
                  <Hostile text={typeof value === 'string' ? value : `path of a file with ${value.file}`} />
                </Fact>
              ))}
            </Facts>
          </Section>
        )}
        <Section title="Configuration">
          <ConfigFields row={row} />
        </Section>
      </div>
    </>
  )
}

function ConfigFields({ row }: { readonly row: KindRow }) {
  const fields = fieldsOfKind(row)
  return (
    <Facts>
      {fields.map(({ name, description, isNeeded, control, default: preset }) => (
        <Fact key={name} name={visible(name)}>
          <Prose text={description} />{' '}
          <span className="text-muted">
            {[
              isNeeded && 'Needed.',
              control.type === 'text' && control.isSecret && 'A secret.',
              control.type === 'choice' && `One of ${control.values.join(', ')}.`,
              preset !== undefined && preset !== '' && `By default ${visible(JSON.stringify(preset))}.`,
            ]
              .filter(Boolean)
              .join(' ')}
          </span>
        </Fact>
      ))}
    </Facts>
  )
}

/** Which bytes run: pinned by their hash, whatever their origin serves today. */
function PluginFacts({ plugin }: { readonly plugin: Plugin }) {
  const [state, setState] = useState<{ isSent: boolean; error?: unknown }>({ isSent: false })
  const refused = useRefusal('reloadPlugin')
  const reload = async () => {
    setState({ isSent: true })
    try {
      const { version } = await admin.plugins.reload(plugin.name)
      await refresh('GET /v1/admin/plugins', 'GET /v1/admin/kinds', 'GET /v1/admin/backends')
      tell(`${plugin.name} ${version} runs in new processes.`)
      setState({ isSent: false })
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  return (
    <Section
      title="Plugin"
      aside={
        <Button refused={refused} disabled={state.isSent} onClick={() => void reload()}>
          {state.isSent ? 'Reloading…' : 'Reload it'}
        </Button>
      }
    >
      {state.error !== undefined && <ErrorNote error={state.error} />}
      <Facts>
        <Fact name="Version">{visible(plugin.version)}</Fact>
        <Fact name="Origin">
          <Hostile text={plugin.origin ?? ''} />
        </Fact>
        {plugin.sha256 !== undefined && (
          <Fact name="SHA-256">
            <code className="text-xs">{plugin.sha256}</code> <Copy text={plugin.sha256} what="the hash" />
          </Fact>
        )}
        <Fact name="Runs as">
          {plugin.runtime}, {plugin.protocol}
        </Fact>
        {plugin.own_name !== undefined && <Fact name="Calls itself">{visible(plugin.own_name)}</Fact>}
        <Fact name="Added">
          <Time at={plugin.added_at} />
        </Fact>
      </Facts>
      <p className="mt-2 text-xs text-muted">
        A plugin is added and removed on the machine of the server:{' '}
        <code>mayfly plugin rm {visible(plugin.name)}</code>
      </p>
    </Section>
  )
}
