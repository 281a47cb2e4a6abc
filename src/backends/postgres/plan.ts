import { createHash } from 'node:crypto'
import { BackendError, unsupported } from '../../domain/backend-error.ts'
import { covers } from '../../domain/scope.ts'
import { type Config, databasesOf } from './config.ts'

type Access = 'read' | 'write'

/** What a credential may do in one database, by membership of one group role. */
export interface Group {
  readonly database: string
  readonly access: Access
}

const SCOPES = 'Scopes here are <database>, <database>:read or <database>:write.'
/** `<database>`, `<database>:read`, `<database>:write` or `*`; both parts may end in `*`. */
const TEMPLATE_SCOPE = /^(?<database>[^:]+)(?::(?<access>read|write|\*))?$/

/**
 * Which database is granted what, in the order of the configuration. Throws `BackendError` (`unsupported`) for a scope that
 * this backend cannot give: nothing is silently dropped or widened.
 */
export function planGroups(settings: Config, scopes: readonly string[]): readonly Group[] {
  if (settings.grant === 'statements') return []
  const most: Access = settings.grant === 'read-write' ? 'write' : 'read'
  const plan = new Map<string, Access>()
  for (const scope of scopes) {
    const parts = TEMPLATE_SCOPE.exec(scope)?.groups
    if (parts === undefined) {
      throw unsupported(SCOPES)
    }
    if (parts['access'] === 'write' && most === 'read') {
      throw unsupported('This backend grants reading only.')
    }
    const access = parts['access'] === 'read' ? 'read' : most
    const pattern = parts['database'] ?? ''
    const named = databasesOf(settings).filter((database) => matches(pattern, database))
    if (named.length === 0 && !pattern.endsWith('*')) {
      throw unsupported('A scope names a database that this backend does not grant.')
    }
    for (const database of named) {
      if (plan.get(database) !== 'write') plan.set(database, access)
    }
  }
  return [...plan].map(([database, access]) => ({ database, access }))
}

/** Whether this backend can give anything of the scope. Own statements decide by themselves. */
export function canGrant(settings: Config, scope: string): boolean {
  if (settings.grant === 'statements') return true
  try {
    return planGroups(settings, [scope]).length > 0
  } catch (error) {
    if (error instanceof BackendError) return false
    throw error
  }
}

function matches(pattern: string, database: string): boolean {
  // A database may be called "admin", and a name may hold a colon: neither is a scope's affair here.
  return database.includes(':') || database === 'admin'
    ? pattern === '*' || pattern === database
    : covers(pattern, database)
}

/** All groups that credentials of this configuration may need. */
export function allGroups(settings: Config): readonly Group[] {
  if (settings.grant === 'statements') return []
  const accesses: readonly Access[] = settings.grant === 'read-write' ? ['read', 'write'] : ['read']
  return databasesOf(settings).flatMap((database) => accesses.map((access) => ({ database, access })))
}

/** Whose roles they are: another login could neither grant nor drop them (PostgreSQL 16 and later). */
export interface Owner {
  readonly uid: string
  readonly login: string
}

/** The common part of the names of a backend's own roles: the body of its uid. */
export function prefixOf(uid: string): string {
  return `${uid.replace(/^be_/, '')}_`
}

/** `mfg_<uid>_<login and database, hashed>_<access>`: at most 63 bytes, as PostgreSQL cuts names. */
export function groupName({ uid, login }: Owner, { database, access }: Group): string {
  return `mfg_${prefixOf(uid)}${hashOf(JSON.stringify([login, database])).slice(0, 12)}_${access}`
}

const CREATORS = 32

/** The roles that create credentials from PostgreSQL 16 on: see `PREPARE` in procedures.ts. */
export function creatorNames(owner: Owner): readonly string[] {
  return Array.from({ length: CREATORS }, (_, index) => creatorName(owner, index))
}

/** The same one for the same credential, evenly spread. */
export function creatorOf(owner: Owner, role: string): string {
  return creatorName(owner, Number.parseInt(hashOf(role).slice(0, 2), 16) % CREATORS)
}

/** Where creators have their functions. */
export function creatorSchema({ uid, login }: Owner): string {
  return `mfc_${prefixOf(uid)}${hashOf(login).slice(0, 6)}`
}

const creatorName = (owner: Owner, index: number) =>
  `${creatorSchema(owner)}_${String(index).padStart(2, '0')}`

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')
