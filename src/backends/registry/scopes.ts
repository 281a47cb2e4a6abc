import { unsupported } from '../../domain/backend-error.ts'
import { covers, isScope } from '../../domain/scope.ts'

/**
 * What each permission needs of `access`: an upload begins by looking whether a layer is there
 * (https://distribution.github.io/distribution/spec/auth/scope).
 */
const ACTIONS = { pull: ['pull'], push: ['pull', 'push'], delete: ['delete'] } as const
type Permission = keyof typeof ACTIONS
const PERMISSIONS = Object.keys(ACTIONS) as Permission[]

/** The name of a repository (OCI Distribution Specification 1.1, "Pulling manifests"). */
const COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
export const REPOSITORY = `${COMPONENT}(?:/${COMPONENT})*`
const IS_REPOSITORY = new RegExp(`^${REPOSITORY}$`)
/** A name whose end was replaced by `*`. */
const IS_PATTERN = /^[a-z0-9._/-]*\*$/

/** One entry of the claim `access` (https://distribution.github.io/distribution/spec/auth/jwt). */
export interface Access {
  readonly type: 'repository'
  readonly name: string
  readonly actions: readonly string[]
}

export function isRegistryScope(scope: string): boolean {
  if (!isScope(scope)) return false
  const [repository = '', permission = '*', ...more] = scope.split(':')
  if (more.length > 0 || !(IS_REPOSITORY.test(repository) || IS_PATTERN.test(repository))) return false
  return permission === '*' || PERMISSIONS.some((one) => one === permission)
}

/** Whether anything can come of a scope: registries know repositories by their exact names. */
export function gives(repositories: readonly string[] | undefined, scope: string): boolean {
  const [repository = ''] = scope.split(':')
  if (repositories === undefined) return !repository.includes('*')
  return repositories.some((name) => covers(repository, name))
}

/** The claim `access`, one entry per repository. Throws `unsupported` for what cannot be narrowed to. */
export function accessOf(
  repositories: readonly string[] | undefined,
  scopes: readonly string[],
): readonly Access[] {
  const actions = new Map<string, Set<string>>()
  for (const scope of scopes) {
    if (!isRegistryScope(scope)) throw unsupported('A scope is not well formed.')
    if (!gives(repositories, scope)) throw unsupported('This backend cannot give one of the scopes.')
    const [repository = '', permission = '*'] = scope.split(':')
    const names = repositories?.filter((name) => covers(repository, name)) ?? [repository]
    const permissions = PERMISSIONS.filter((one) => covers(permission, one))
    for (const name of names) {
      const known = actions.get(name) ?? new Set()
      for (const action of permissions.flatMap((one) => ACTIONS[one])) known.add(action)
      actions.set(name, known)
    }
  }
  return [...actions].map(([name, set]) => ({ type: 'repository', name, actions: [...set].sort() }))
}
