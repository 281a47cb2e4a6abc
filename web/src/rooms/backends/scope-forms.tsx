import type { Kind } from '../../../../src/client/wire.ts'
import { Copy } from '../../ui/copy.tsx'
import { visible } from '../../ui/hostile.ts'
import { Prose } from '../../ui/prose.tsx'

interface Props {
  readonly forms: Kind['scopes']['forms']
  /** With a backend, scopes are shown as agents ask for them. */
  readonly backend?: string
  readonly help?: string | undefined
}

/** The forms of a scope, each with what a credential with it may do. */
export function ScopeForms({ forms, backend, help }: Props) {
  return (
    <>
      {help !== undefined && (
        <p className="mb-2 text-sm text-muted">
          <Prose text={help} />
        </p>
      )}
      <ul className="grid gap-1">
        {forms.map(({ form, gives }) => {
          const scope = backend === undefined ? form : `${backend}:${form}`
          return (
            <li key={form} className="flex items-start gap-x-3 border-b border-line/60 py-1 last:border-0">
              <span className="min-w-0 grow">
                <code className="text-xs [overflow-wrap:anywhere]">{visible(scope)}</code>
                <span className="block text-muted">{visible(gives)}</span>
              </span>
              <Copy text={scope} what={`the scope ${scope}`} />
            </li>
          )
        })}
      </ul>
    </>
  )
}
