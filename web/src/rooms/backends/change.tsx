import { useState } from 'react'
import { useLocation } from 'wouter'
import type { Backend, Kind } from '../../../../src/client/wire.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { CopyAs } from '../../ui/copy-as.tsx'
import { CheckField } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { Skeleton, Warning } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { Detail } from '../../ui/page.tsx'
import { useKind } from '../kinds/use-kinds.ts'
import { BackendForm, type Filled } from './backend-form.tsx'
import { fieldsOfKind, KEPT, withoutSecrets } from './form.ts'
import { showRules } from './rule-values.ts'

/** The form of a backend that exists. Only what was changed is sent; secrets that were not entered stay. */
export function ChangeBackend({ backend }: { readonly backend: Backend }) {
  const [, go] = useLocation()
  const kind = useKind(backend.type)
  // What is in the form does not move when the backend changes under it: the server says if it did.
  const [before] = useState(backend)
  return (
    <Detail kind="Change the backend" title={visible(before.name)} back={paths.backend(before.name)}>
      {before.warnings?.map((one) => (
        <Warning key={one}>{visible(one)}</Warning>
      ))}
      {kind === undefined ? (
        <Skeleton lines={8} />
      ) : (
        <Form before={before} kind={kind} onClose={() => go(paths.backend(before.name))} />
      )}
    </Detail>
  )
}

interface FormProps {
  readonly before: Backend
  readonly kind: Kind
  readonly onClose: () => void
}

function Form({ before, kind, onClose }: FormProps) {
  const [isForced, setForced] = useState(false)
  const fields = fieldsOfKind(kind)
  const kept = fields.map(({ name }) => name).filter((name) => before.config[name] === KEPT)
  const moves = fields.filter(({ isUpstream }) => isUpstream).map(({ name }) => name)
  const bodyOf = ({ config, rules, isConfigChanged }: Filled) => ({
    ...rules,
    ...(isConfigChanged ? { config } : {}),
  })
  return (
    <BackendForm
      fields={fields}
      config={before.config}
      kept={kept}
      rules={showRules(before)}
      action="Change it"
      onClose={onClose}
      onSubmit={async (filled) => {
        const { warnings = [] } = await admin.backends.update(before.name, bodyOf(filled), {
          ...(filled.isChecked ? {} : { check: false }),
          ...(isForced ? { force: true } : {}),
        })
        await refresh('GET /v1/admin/backends', 'GET /v1/admin/backends/:name')
        tell([`${before.name} is changed.`, ...warnings.map(visible)].join(' '))
        onClose()
      }}
      preview={(filled) => (
        <CopyAs
          command={`mayfly backend update ${before.name} --config -`}
          request={`PUT /v1/admin/backends/${before.name}`}
          body={{
            ...filled.rules,
            ...(filled.isConfigChanged ? { config: withoutSecrets(fields, filled.config) } : {}),
          }}
        />
      )}
    >
      {moves.length > 0 && (
        <CheckField
          label="It is the same upstream under another address"
          hint={`${moves.join(', ')} say which upstream it is. While credentials live, they change only with this: elsewhere those could not be ended.`}
          checked={isForced}
          onChange={({ target }) => setForced(target.checked)}
        />
      )}
    </BackendForm>
  )
}
