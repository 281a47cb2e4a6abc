import type { OpenBackend } from '../../backends/open-backends.ts'
import { invalid } from '../../domain/problems.ts'
import { coversAny } from '../../domain/scope.ts'
import { grantingBackend } from '../granting-backend.ts'
import { formsOf } from './plan-issue.ts'

/**
 * The first example of the kind that the backend may issue and its configuration fills in, or else the first scope that it is
 * limited to. Throws `invalid_request` if there is none.
 */
export function exampleScopes(backend: OpenBackend): readonly string[] {
  const { kind, config = {}, allowedScopes } = backend
  const { allowed, gives } = grantingBackend(backend)
  const examples = kind.scopes.forms.map(({ form }) => filledIn(form, config))
  const found = [...examples, ...(allowedScopes ?? [])].find(
    (scope) =>
      kind.scopes.valid(scope) &&
      (allowed === undefined || coversAny(allowed, scope)) &&
      gives?.(scope) !== false,
  )
  if (found === undefined)
    throw invalid(`Name the scopes to try: no example of this kind fits this backend${formsOf(kind)}.`)
  return [found]
}

/** `<field>` is the text of that field of the configuration; any other `<word>` makes the form no scope. */
function filledIn(form: string, config: Readonly<Record<string, unknown>>): string {
  return form.replace(/<(\w+)>/g, (whole, field: string) => {
    const value = config[field]
    return typeof value === 'string' && /^[\w.@+-]+$/.test(value) ? value : whole
  })
}
