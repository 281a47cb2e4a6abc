import type { OpenBackend } from '../backends/open-backends.ts'
import { nameKey } from '../domain/agent.ts'
import { canGive, type GrantingBackend, isAdminScope, relativeScope } from '../domain/scope.ts'
import type { Core } from './context.ts'

/** The part of a backend that decisions about scopes need. */
export function grantingBackend({
  name,
  kind,
  config,
  allowedScopes: allowed,
}: Pick<OpenBackend, 'name' | 'kind' | 'config' | 'allowedScopes'>): GrantingBackend {
  return {
    name,
    allowed,
    gives: (scope) => {
      if (!kind.scopes.valid(scope)) return false
      // The configuration of a broken backend is unknown.
      return config === undefined ? undefined : kind.scopes.gives?.(config, scope)
    },
  }
}

type Backends = ReadonlyMap<string, OpenBackend>

/** Sentences about scopes that name no backend, and those that their backend can never give. */
export async function scopeWarnings(
  core: Pick<Core, 'store' | 'backends'>,
  scopes: readonly string[],
): Promise<string[]> {
  const { byName } = await core.backends.at(await core.store.generation())
  return warningsOf(scopes, (scope) => warnOfUnknown(byName, scope) ?? warnOfNever(byName, scope))
}

/** The scopes that name no backend, and those that their backend can never give. */
export async function impossibleScopes(
  core: Pick<Core, 'store' | 'backends'>,
  scopes: readonly string[],
): Promise<Set<string>> {
  const { byName } = await core.backends.at(await core.store.generation())
  return new Set(
    scopes.filter((scope) => (warnOfUnknown(byName, scope) ?? warnOfNever(byName, scope)) !== undefined),
  )
}

/** Like `scopeWarnings`, for an unknown caller, who must not learn what a configuration allows. */
export async function unknownBackendWarnings(
  core: Pick<Core, 'store' | 'backends'>,
  scopes: readonly string[],
): Promise<string[]> {
  const { byName } = await core.backends.at(await core.store.generation())
  return warningsOf(scopes, (scope) => warnOfUnknown(byName, scope))
}

function warningsOf(scopes: readonly string[], warn: (scope: string) => string | undefined): string[] {
  return [...new Set(scopes)].map(warn).filter((warning) => warning !== undefined)
}

const backendsIn = (byName: Backends, scope: string) =>
  [...byName.values()].filter(({ name }) => relativeScope(name, scope) !== undefined)

function warnOfUnknown(byName: Backends, scope: string): string | undefined {
  const [first = ''] = scope.split(':')
  // All backends, including future ones.
  if (isAdminScope(scope) || first === '*' || backendsIn(byName, scope).length > 0) return undefined
  const other = byName.get(nameKey(first))
  return other === undefined
    ? `The scope "${scope}" names no backend: there is none called "${first}".`
    : `The scope "${scope}" names no backend: capital letters count, and the backend is called "${other.name}".`
}

function warnOfNever(byName: Backends, scope: string): string | undefined {
  const open = backendsIn(byName, scope)
  const named = open.map(grantingBackend)
  const [only] = named
  if (only === undefined || named.some((backend) => canGive(backend, scope))) return undefined
  if (named.length > 1) return `None of the backends that the scope "${scope}" names can ever give it.`
  const meant = `${only.name}:${scope}`
  const hint = canGive(only, meant) ? ` Do you mean "${meant}"?` : formsOf(open[0])
  return `The backend "${only.name}" can never give the scope "${scope}".${hint}`
}

/** What would work, judged by the kind alone: not everybody may know the configuration. */
function formsOf(backend: OpenBackend | undefined): string {
  if (backend === undefined || backend.allowedScopes !== undefined) return ''
  const forms = backend.kind.scopes.forms.filter(({ form }) => form !== '*').slice(0, 2)
  return forms.length === 0
    ? ''
    : ` Its scopes read ${forms.map(({ form }) => `"${backend.name}:${form}"`).join(' or ')}.`
}
