import { type BackendError, unsupported } from '../../domain/backend-error.ts'
import type { Installation, TokenPlan } from './client.ts'
import type { Config, Params } from './config.ts'
import { LEVELS, type Level, matches, PERMISSIONS, parseScope, type Wish, WRITE_ONLY } from './scopes.ts'

/** Of the body parameter `repositories` ("Create an installation access token for an app"). */
const MAX_REPOSITORIES = 500

/** Throws `unsupported`. */
export function parseWishes(scopes: readonly string[]): Wish[] {
  return scopes.map((scope) => {
    const wish = parseScope(scope)
    if (wish === undefined) throw refused('A scope is not one of GitHub.')
    return wish
  })
}

/** The one account that the token is for. Throws `unsupported` where it is not one, or not this backend's. */
export function accountOf(
  configured: string | undefined,
  wishes: readonly Wish[],
  { repos = [] }: Params,
): string {
  const asked = repos.map((repo) => (repo.includes('/') ? repo.split('/')[0] : undefined))
  // The repositories of a request select among its scopes.
  const named = asked.some((owner) => owner !== undefined) ? asked : wishes.map(({ owner }) => owner)
  const all = [configured, ...named].filter((owner) => owner !== undefined)
  const [owner, ...others] = new Set(all.map((one) => one.toLowerCase()))
  if (owner === undefined) throw refused('Name the account: a scope such as acme/web, or a repository.')
  if (others.length > 0) {
    throw refused(
      configured === undefined
        ? 'A token of GitHub is for one account; request those of several separately.'
        : `This backend is for the account ${configured}.`,
    )
  }
  return owner
}

/** Exactly what the scopes grant. Throws `unsupported` where one token cannot be that. */
export async function planToken(
  wishes: readonly Wish[],
  { repos, read_only: readOnly = false }: Params,
  { owner, permissions: installed }: Installation,
  listRepositories: () => Promise<readonly string[]>,
): Promise<TokenPlan> {
  const here = wishes.filter((wish) => (wish.owner ?? owner).toLowerCase() === owner.toLowerCase())
  const names = repos?.map((repo) => repo.slice(repo.indexOf('/') + 1))
  const repositories = unique(names ?? (await namesOf(here, listRepositories)))
  if (repositories.length === 0) throw refused('No repository of the installation is covered by the scopes.')
  if (repositories.length > MAX_REPOSITORIES) {
    throw refused(
      `GitHub gives a token for at most ${MAX_REPOSITORIES} repositories; these are ${repositories.length}.`,
    )
  }
  const plans = repositories.map((name) => {
    const covering = here.filter((wish) => matches(wish.repository, name))
    if (covering.length === 0) throw refused('The scopes do not cover one of the repositories.')
    return permissionsOf(covering, installed, readOnly)
  })
  const [permissions = {}, ...others] = plans
  if (others.some((other) => !isSame(other, permissions))) {
    throw refused(
      'A token of GitHub has the same permissions on all its repositories; request these scopes separately.',
    )
  }
  if (Object.keys(permissions).length === 0) throw refused('The App has none of the permissions requested.')
  return { repositories, permissions }
}

async function namesOf(wishes: readonly Wish[], list: () => Promise<readonly string[]>) {
  const exact = wishes.map(({ repository }) => repository).filter((name) => !name.endsWith('*'))
  if (exact.length === wishes.length) return exact
  const listed = await list()
  return [...exact, ...listed.filter((name) => wishes.some(({ repository }) => matches(repository, name)))]
}

function unique(names: readonly string[]): string[] {
  return [...new Map(names.map((name) => [name.toLowerCase(), name])).values()]
}

/** What the wishes grant on one repository, each permission as high as the highest of them. */
function permissionsOf(
  wishes: readonly Wish[],
  installed: Readonly<Record<string, Level>>,
  readOnly: boolean,
): Record<string, Level> {
  const granted: Record<string, Level> = {}
  for (const wish of wishes) {
    const isPattern = wish.permission.endsWith('*')
    if (!isPattern) requireInstalled(wish, installed)
    for (const permission of PERMISSIONS.filter((known) => matches(wish.permission, known))) {
      const most = installed[permission]
      if (most === undefined) continue
      const level = lower(lower(wish.level ?? most, most), readOnly ? 'read' : most)
      if (level === 'read' && WRITE_ONLY.has(permission)) continue
      const before = granted[permission]
      granted[permission] = before === undefined || rank(level) > rank(before) ? level : before
    }
  }
  return granted
}

function requireInstalled({ permission, level }: Wish, installed: Readonly<Record<string, Level>>): void {
  const most = installed[permission]
  if (most === undefined || (level !== undefined && rank(level) > rank(most))) {
    const wanted = level === undefined ? permission : `${permission}:${level}`
    throw refused(`The installation of the App does not have the permission ${wanted}.`)
  }
  if (level === 'read' && WRITE_ONLY.has(permission)) {
    throw refused(`GitHub has the permission ${permission} for writing only.`)
  }
}

export const rank = (level: Level): number => LEVELS.indexOf(level)
const lower = (left: Level, right: Level): Level => (rank(left) < rank(right) ? left : right)

function isSame(left: Readonly<Record<string, Level>>, right: Readonly<Record<string, Level>>): boolean {
  const names = Object.keys(left)
  return names.length === Object.keys(right).length && names.every((name) => left[name] === right[name])
}

function refused(message: string): BackendError {
  return unsupported(message)
}

/** Whether the backend can ever give anything of a valid scope. */
export function canGive({ owner }: Config, scope: string): boolean {
  const wish = parseScope(scope)
  return wish !== undefined && (owner === undefined || matches(wish.owner ?? owner, owner))
}
