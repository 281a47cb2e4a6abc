import { covers } from '../../domain/scope.ts'
import { BackendError } from '../kind.ts'
import { type Config, databasesOf } from './config.ts'
import { isCredential } from './roles.ts'
import type { Session } from './session.ts'
import { fillStatement, quoteIdentifier, quoteList, quoteLiteral } from './statements.ts'

export type Access = 'read' | 'write'

/** `<database>`, `<database>:read`, `<database>:write` or `*`; both parts may end in `*`. */
const TEMPLATE_SCOPE = /^(?<database>[^:]+)(?::(?<access>read|write|\*))?$/

/**
 * Which database is granted what, in the order of the configuration. Throws `BackendError` (`unsupported`) for
 * a scope that this backend cannot give: nothing is silently dropped or widened.
 */
export function planAccess(settings: Config, scopes: readonly string[]): Map<string, Access> {
  const most: Access = settings.grant === 'read-write' ? 'write' : 'read'
  const plan = new Map<string, Access>()
  for (const scope of scopes) {
    const parts = TEMPLATE_SCOPE.exec(scope)?.groups
    if (parts === undefined) {
      throw new BackendError(
        'unsupported',
        'Scopes here are <database>, <database>:read or <database>:write.',
      )
    }
    if (parts['access'] === 'write' && most === 'read') {
      throw new BackendError('unsupported', 'This backend grants reading only.')
    }
    const access = parts['access'] === 'read' ? 'read' : most
    const pattern = parts['database'] ?? ''
    const named = databasesOf(settings).filter((database) => matches(pattern, database))
    if (named.length === 0 && !pattern.endsWith('*')) {
      throw new BackendError('unsupported', 'A scope names a database that this backend does not grant.')
    }
    for (const database of named) {
      if (plan.get(database) !== 'write') plan.set(database, access)
    }
  }
  return plan
}

function matches(pattern: string, database: string): boolean {
  // A database may be called "admin", and a name may hold a colon: neither is a scope's affair here.
  return database.includes(':') || database === 'admin'
    ? pattern === '*' || pattern === database
    : covers(pattern, database)
}

/** CONNECT where PUBLIC has been denied it. Database privileges are shared: any database can grant them. */
export async function grantConnect(
  session: Session,
  role: string,
  databases: readonly string[],
): Promise<void> {
  const missing = await session.query(
    'SELECT d AS name FROM unnest($2::text[]) d WHERE NOT has_database_privilege($1::name, d, $3)',
    [role, databases, 'CONNECT'],
  )
  if (missing.length === 0) return
  await session.run(
    missing.map(
      (row) =>
        `GRANT CONNECT ON DATABASE ${quoteIdentifier(String(row['name']))} TO ${quoteIdentifier(role)}`,
    ),
  )
}

/** Of `pg_class c`. */
const OF_CREDENTIAL = `EXISTS (SELECT FROM pg_roles r WHERE r.oid = c.relowner AND ${isCredential('r.rolname')})`

/**
 * The ready-made templates, for one database that `session` is connected to. What credentials have made is passed over:
 * its owner would keep all others from being granted anything.
 */
export async function grantSchemas(
  session: Session,
  role: string,
  schemas: readonly string[],
  access: Access,
): Promise<void> {
  const found = await session.query(
    `SELECT s AS name, has_schema_privilege($1::name, s, 'USAGE') AS usable, EXISTS (SELECT FROM pg_class c
            WHERE c.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = s) AND ${OF_CREDENTIAL}) AS mixed
       FROM unnest($2::text[]) s`,
    [role, schemas],
  )
  const to = `TO ${quoteIdentifier(role)}`
  const list = schemas.map(quoteIdentifier).join(', ')
  const tables = access === 'write' ? 'SELECT, INSERT, UPDATE, DELETE' : 'SELECT'
  const sequences = access === 'write' ? 'USAGE, SELECT, UPDATE' : 'SELECT'
  const missing = found.filter(({ usable }) => usable !== true)
  const mixed = found.some((row) => row['mixed'] === true)
  await session.run([
    ...missing.map((row) => `GRANT USAGE ON SCHEMA ${quoteIdentifier(String(row['name']))} ${to}`),
    mixed
      ? grantNamed(`GRANT ${tables} ON TABLE`, "'r', 'p', 'v', 'm', 'f'", schemas, to)
      : `GRANT ${tables} ON ALL TABLES IN SCHEMA ${list} ${to}`,
    mixed
      ? grantNamed(`GRANT ${sequences} ON SEQUENCE`, "'S'", schemas, to)
      : `GRANT ${sequences} ON ALL SEQUENCES IN SCHEMA ${list} ${to}`,
  ])
}

/** On all of these kinds (`pg_class.relkind`) but what credentials own. */
function grantNamed(grant: string, kinds: string, schemas: readonly string[], to: string): string {
  const body = `DECLARE named text; BEGIN
    SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ') INTO named
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = ANY (${quoteList(schemas)}) AND c.relkind IN (${kinds}) AND NOT ${OF_CREDENTIAL};
    IF named IS NOT NULL THEN EXECUTE ${quoteLiteral(`${grant} `)} || named || ${quoteLiteral(` ${to}`)}; END IF; END`
  return `DO ${quoteLiteral(body)}`
}

export interface RoleValues {
  readonly role: string
  /** The form that the server stores and may log; never the password itself. */
  readonly verifier: string
  /** Epoch ms. */
  readonly expiresAt: number
  readonly scopes: readonly string[]
}

/** The administrator's own statements, one at a time. */
export async function runStatements(
  session: Session,
  statements: readonly string[],
  values: RoleValues,
): Promise<void> {
  const filled = {
    name: quoteIdentifier(values.role),
    password: quoteLiteral(values.verifier),
    expiration: quoteLiteral(new Date(values.expiresAt).toISOString()),
    scopes: quoteList(values.scopes),
  }
  for (const statement of statements) await session.query(fillStatement(statement, filled))
  // They may take another on, for which their connection would be kept.
  await session.run(['RESET ROLE'])
}

/** PostgreSQL keeps microseconds; ISO 8601 in UTC is read the same under every DateStyle and TimeZone. */
export function createRole(values: RoleValues): string {
  return (
    `CREATE ROLE ${quoteIdentifier(values.role)} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION ` +
    `PASSWORD ${quoteLiteral(values.verifier)} VALID UNTIL ${quoteLiteral(new Date(values.expiresAt).toISOString())}`
  )
}
