import { randomBytes } from 'node:crypto'
import { BackendError, type Fault } from '../kind.ts'
import { type Config, databasesOf } from './config.ts'
import { sqlState, toBackendError } from './faults.ts'
import { createRole, grantConnect, grantSchemas, planAccess, runStatements } from './grants.ts'
import { disown } from './leftovers.ts'
import { joinRole } from './roles.ts'
import { scramVerifier } from './scram.ts'
import type { Connections, Session } from './session.ts'
import { quoteIdentifier } from './statements.ts'

interface Self {
  readonly name: string
  readonly superuser: boolean
  readonly version: number
}

/** How long the rehearsed role would live, had it ever been committed. */
const REHEARSED_MS = 60_000

/**
 * Finds out whether our own role can issue and revoke, by doing both in transactions that are rolled back, one in
 * each granted database. Returns warnings. Throws `BackendError` whose message is the statement that an administrator must
 * run.
 */
export async function preflight(
  connections: Connections,
  settings: Config,
  now: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const warnings = new Set<string>()
  const values = {
    // Not of the form of a credential's role.
    role: `mf_check_${randomBytes(8).toString('hex')}`,
    verifier: await scramVerifier(randomBytes(32).toString('base64url')),
    expiresAt: now + REHEARSED_MS,
    scopes: ['*'],
  }
  for (const database of new Set([settings.database, ...databasesOf(settings)])) {
    const self = await connections.rehearse(database, signal, (session) =>
      rehearse(session, settings, database, values),
    )
    if (self.superuser) warnings.add(SUPERUSER)
  }
  return [...warnings]
}

const SUPERUSER =
  'Mayfly logs in as a superuser, who can run programs on the server of the database. Use a role that has CREATEROLE and grants only what credentials need.'

type Values = Parameters<typeof runStatements>[2]

async function rehearse(session: Session, settings: Config, database: string, values: Values): Promise<Self> {
  const self = await requireCreateRole(session)
  await step(`ALTER ROLE ${self.name} CREATEROLE`, () => session.run([createRole(values)]))
  await step(adviceToJoin(self), () => joinRole(session, values.role))
  if (settings.grant === 'statements') {
    await runStatements(session, settings.statements ?? [], values)
  } else {
    await rehearseTemplate(session, settings, database, values.role, self)
  }
  await requireTermination(session, values.role, self)
  const reassignTo = settings.reassign_owned_to
  if (reassignTo !== undefined) await requireHarmless(session, reassignTo)
  const advice =
    reassignTo === undefined
      ? adviceToJoin(self)
      : `GRANT ${quoteIdentifier(reassignTo)} TO ${self.name} ("reassign_owned_to")`
  await step(advice, () => disown(session, values.role, settings))
  await step(`ALTER ROLE ${self.name} CREATEROLE`, () =>
    session.run([`DROP ROLE ${quoteIdentifier(values.role)}`]),
  )
  return self
}

async function requireCreateRole(session: Session): Promise<Self> {
  const rows = await session.query(
    `SELECT rolname, rolsuper, rolcreaterole, current_setting('server_version_num')::int AS version
       FROM pg_roles WHERE rolname = current_user`,
  )
  const self = {
    name: quoteIdentifier(String(rows[0]?.['rolname'])),
    superuser: rows[0]?.['rolsuper'] === true,
    version: Number(rows[0]?.['version']),
  }
  if (self.version < 130_000) {
    throw new BackendError('unsupported', 'PostgreSQL 13 or later is needed.')
  }
  if (!self.superuser && rows[0]?.['rolcreaterole'] !== true) {
    throw lacking(`ALTER ROLE ${self.name} CREATEROLE`)
  }
  return self
}

async function rehearseTemplate(
  session: Session,
  settings: Config,
  database: string,
  role: string,
  self: Self,
): Promise<void> {
  const databases = databasesOf(settings)
  if (database === settings.database) {
    const names = databases.map(quoteIdentifier).join(', ')
    await step(`GRANT CONNECT ON DATABASE ${names} TO ${self.name} WITH GRANT OPTION`, () =>
      grantConnect(session, role, databases),
    )
  }
  const access = planAccess(settings, ['*']).get(database)
  if (access === undefined) return
  const schemas = settings.schemas.map(quoteIdentifier).join(', ')
  const list = access === 'write' ? 'SELECT, INSERT, UPDATE, DELETE' : 'SELECT'
  const sequences = access === 'write' ? 'USAGE, SELECT, UPDATE' : 'SELECT'
  const advice =
    `in ${quoteIdentifier(database)}: GRANT USAGE ON SCHEMA ${schemas} TO ${self.name} WITH GRANT OPTION; ` +
    `GRANT ${list} ON ALL TABLES IN SCHEMA ${schemas} TO ${self.name} WITH GRANT OPTION; ` +
    `GRANT ${sequences} ON ALL SEQUENCES IN SCHEMA ${schemas} TO ${self.name} WITH GRANT OPTION`
  await step(advice, () => grantSchemas(session, role, settings.schemas, access))
}

/** A reassigned function or view of a credential's role runs with the rights of its new owner. */
async function requireHarmless(session: Session, reassignTo: string): Promise<void> {
  const rows = await session.query(
    'SELECT rolsuper OR rolcreaterole AS mighty FROM pg_roles WHERE rolname = $1::name',
    [reassignTo],
  )
  if (rows[0]?.['mighty'] !== true) return
  throw new BackendError(
    'misconfigured',
    '"reassign_owned_to" is a superuser or may create roles: functions that a credential leaves behind would run with its rights. Name a role without any.',
  )
}

async function requireTermination(session: Session, role: string, self: Self): Promise<void> {
  if (self.superuser) return
  const rows = await session.query(
    `SELECT pg_has_role($1::name, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE') AS may`,
    [role],
  )
  if (rows[0]?.['may'] !== true) {
    throw lacking(`GRANT pg_signal_backend TO ${self.name}; ${adviceToJoin(self)}`)
  }
}

/** Until PostgreSQL 15 a NOINHERIT role does not have the rights of the roles it joins. */
function adviceToJoin(self: Self): string {
  return self.version >= 160_000
    ? `ALTER ROLE ${self.name} CREATEROLE`
    : `ALTER ROLE ${self.name} CREATEROLE INHERIT`
}

/** A refusal becomes the statement that would lift it. */
async function step(advice: string, action: () => Promise<unknown>): Promise<void> {
  try {
    await action()
  } catch (error) {
    const fault: Fault = toBackendError(error).fault
    if (fault !== 'denied' || sqlState(error)?.startsWith('28') === true) throw error
    throw lacking(advice, error)
  }
}

function lacking(advice: string, cause?: unknown): BackendError {
  const detail = cause instanceof Error ? { detail: cause.message, cause } : {}
  return new BackendError('denied', `The role that Mayfly uses lacks a privilege. Run: ${advice}`, detail)
}
