import { isScope } from '../../domain/scope.ts'
import { matches as matchesExactly } from '../named-scopes.ts'
import { OWNER, REPOSITORY } from './config.ts'

/** `write` includes `read`, `admin` includes both. */
export const LEVELS = ['read', 'write', 'admin'] as const
export type Level = (typeof LEVELS)[number]

/**
 * Permissions on repositories, as `app-permissions` of GitHub's OpenAPI description names them. Those of organizations, users
 * and enterprises are left out: no list of repositories limits them.
 */
export const PERMISSIONS: readonly string[] = (
  'actions administration artifact_metadata attestations checks code_quality codespaces contents dependabot_secrets ' +
  'deployments discussions environments issues merge_queues metadata packages pages pull_requests ' +
  'repository_custom_properties repository_hooks repository_projects secret_scanning_alerts secrets security_events ' +
  'single_file statuses vulnerability_alerts workflows'
).split(' ')

/** Permissions that cannot be granted for reading alone. */
export const WRITE_ONLY = new Set(['workflows'])

/** What one scope asks for. A name that ends in `*` stands for all that begin so. */
export interface Wish {
  /** `undefined` for the scope `*`: the account that the configuration or the request names. */
  readonly owner: string | undefined
  readonly repository: string
  readonly permission: string
  /** `undefined`: as high as the installation has it. */
  readonly level: Level | undefined
}

const TARGET = new RegExp(`^(?:\\*|(${OWNER})/(\\*|${REPOSITORY}\\*?))$`)

/** `undefined` for text that is no scope of this kind. */
export function parseScope(scope: string): Wish | undefined {
  if (!isScope(scope)) return undefined
  const [target = '', ...rest] = scope.split(':')
  const found = TARGET.exec(target)
  const [, owner, repository = '*'] = found ?? []
  if (found === null || repository === '.' || repository === '..' || isAmbiguous(rest)) return undefined
  const [permission = '*', level = '*', ...more] = isLevel(rest[0]) ? ['*', ...rest] : rest
  if (more.length > 0 || !(level === '*' || isLevel(level))) return undefined
  if (!PERMISSIONS.some((known) => matches(permission, known))) return undefined
  return { owner, repository, permission, level: level === '*' ? undefined : level }
}

/** `w*` reads as `workflows`, but an agent that holds it may also ask for `write`, which is every permission. */
function isAmbiguous([pattern = '', ...more]: readonly string[]): boolean {
  const isPattern = pattern.length > 1 && pattern.endsWith('*')
  return isPattern && more.length === 0 && LEVELS.some((level) => matches(pattern, level))
}

export function isLevel(text: unknown): text is Level {
  return LEVELS.some((level) => level === text)
}

/** GitHub does not distinguish upper and lower case in names of accounts and repositories. */
export function matches(pattern: string, name: string): boolean {
  return matchesExactly(pattern.toLowerCase(), name.toLowerCase())
}

export const SCOPE_FORMS = [
  {
    form: '<owner>/<repo>:contents:read',
    gives: 'read the contents of a repository (any repository permission of GitHub)',
  },
  { form: '<owner>/<repo>:contents:write', gives: 'change the contents of a repository' },
  { form: '<owner>/<repo>:read', gives: 'read all of a repository that the App may read' },
  { form: '<owner>/<repo>', gives: 'do in a repository all that the App may do' },
  {
    form: '<owner>/*:contents:read',
    gives: 'read the contents of all repositories of the installation',
  },
  { form: '*', gives: 'do so in all repositories of the installation' },
]

export const SCOPE_HELP =
  '<owner>/<repository>, then :<permission>, then :read or :write, such as acme/web:contents:read. The names of permissions ' +
  'are those of the REST API. Without a permission it is every repository permission that the App has; without a level, as ' +
  'high as the App has it. acme/* and acme/web-* are the repositories of the installation at this time whose names begin so.'
