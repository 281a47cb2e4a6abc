import { BackendError, unsupported } from '../../domain/backend-error.ts'
import { covers, isScope } from '../../domain/scope.ts'
import type { Config } from './config.ts'

type Access = 'read' | 'write'

/** What a credential may do in one database, or with one table of it. */
export interface Grant {
  readonly database: string
  readonly table?: string
  readonly access: Access
}

const SCOPE = /^(?<database>[^:.]+)(?:\.(?<table>[^:]+))?(?::(?<access>read|write|\*))?$/
/** A view is listed with its definition: without it dump programs fail. */
const READ = 'SELECT, SHOW VIEW'
const PRIVILEGES: Readonly<Record<Access, string>> = { read: READ, write: `${READ}, INSERT, UPDATE, DELETE` }

export function isValid(scope: string): boolean {
  return isScope(scope) && SCOPE.test(scope)
}

/** Throws `BackendError` (`unsupported`) for a scope that this backend cannot give: nothing is dropped or widened. */
export function planGrants(settings: Config, scopes: readonly string[]): readonly Grant[] {
  return scopes.flatMap((scope) => grantsOf(settings, scope))
}

function grantsOf(settings: Config, scope: string): readonly Grant[] {
  const parts = isScope(scope) ? SCOPE.exec(scope)?.groups : undefined
  if (parts === undefined) {
    throw unsupported('A scope is not of the form <database>.<table>:read.')
  }
  const { database: pattern = '', table, access: asked } = parts
  const most: Access = settings.grant === 'read-write' ? 'write' : 'read'
  if (asked === 'write' && most === 'read') {
    throw unsupported('This backend grants reading only.')
  }
  const access = asked === 'read' ? 'read' : most
  const named = settings.databases.filter((database) => matches(pattern, database))
  if (named.length === 0 && !pattern.endsWith('*')) {
    throw unsupported('A scope names a database that this backend does not grant.')
  }
  if (table === undefined || table === '*') return named.map((database) => ({ database, access }))
  if (table.endsWith('*')) {
    // MySQL has patterns for databases only.
    throw unsupported('A scope names tables by a pattern, which MySQL cannot grant.')
  }
  return named.map((database) => ({ database, table, access }))
}

/** Only its own name and `*` mean a database called "admin": see `covers`. */
function matches(pattern: string, database: string): boolean {
  return database === 'admin' ? pattern === '*' || pattern === 'admin' : covers(pattern, database)
}

export function canGrant(settings: Config, scope: string): boolean {
  try {
    return grantsOf(settings, scope).length > 0
  } catch (error) {
    if (error instanceof BackendError) return false
    throw error
  }
}

export function grantStatement({ database, table, access }: Grant, account: string): string {
  const where =
    table === undefined
      ? `${quoteName(escapeWildcards(database))}.*`
      : [database, table].map(quoteName).join('.')
  return `GRANT ${PRIVILEGES[access]} ON ${where} TO ${account}`
}

/**
 * `_` and `%` are wildcards in the name of a database of `GRANT … ON db.*`, but not in front of a table (MySQL 8.4 manual,
 * 15.7.1.6 "GRANT Statement"; MariaDB, "GRANT", Database Privileges). Escaped, they mean themselves in every setting of
 * `partial_revokes`.
 */
export function escapeWildcards(database: string): string {
  return database.replace(/[_%]/g, '\\$&')
}

const quoteName = (name: string) => `\`${name.replaceAll('`', '``')}\``
