import { randomBytes } from 'node:crypto'
import { type BackendError, denied, misconfigured } from '../../domain/backend-error.ts'
import type { Host } from '../kind.ts'
import type { Row, Session } from './client.ts'
import { type Config, databasesOf } from './config.ts'
import { stateOf, toBackendError } from './faults.ts'
import { invoke, replyOf } from './invoke.ts'
import { issueStatements, type NewRole, runStatements } from './issue.ts'
import { allGroups } from './plan.ts'
import { revokeStatements } from './revoke.ts'
import { scramVerifier } from './scram.ts'
import { requireSetup, roleOfGroup, type Server } from './server.ts'
import { quoteIdentifier } from './statements.ts'
import { prepareStatements, type Refreshed, refreshStatements, type Upstream } from './upstream.ts'

/** How long the rehearsed role would live, had it ever been committed. */
const REHEARSED_MS = 60_000

const FUNCTIONS =
  'Mayfly creates roles with rights of its own (CREATEROLE). The functions that "mayfly backend setup-sql postgres" prints need none.'
const SUPERUSER = `Mayfly logs in as a superuser, who can run programs on the server of the database. Use a role that may only execute the functions that "mayfly backend setup-sql postgres" prints, or one with CREATEROLE that grants only what credentials need.`
const TRUSTING =
  'PostgreSQL never asked for the password, so it was not checked: pg_hba.conf trusts this login, and perhaps those of credentials.'
/** A reassigned function or view of a credential's role runs with the rights of its new owner. */
const MIGHTY_HEIR =
  '"reassign_owned_to" is a superuser or may create roles: functions that a credential leaves behind would run with its rights. Name a role without any.'

/**
 * Finds out whether our own login can issue and revoke, by doing both in transactions that are rolled back, one in each
 * granted database. Returns warnings. Throws `BackendError` whose message says what an administrator must run.
 */
export async function preflight(
  upstream: Upstream,
  host: Host,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { settings, issuing } = upstream
  upstream.forget()
  const server = await upstream.server(issuing, signal)
  requireSetup(server, settings)
  if (server.mightyHeir) throw misconfigured(MIGHTY_HEIR)
  const { way, login } = server
  if (way === 'direct' && !server.createRole) {
    const script = 'the script that "mayfly backend setup-sql postgres" prints'
    throw lacking(`ALTER ROLE ${login} CREATEROLE, or, better, ${script}`)
  }
  const values = {
    role: `mf_${randomBytes(16).toString('hex').slice(0, 26)}`,
    verifier: await scramVerifier(randomBytes(32).toString('base64url'), settings.scram_iterations),
    until: new Date(host.now() + REHEARSED_MS).toISOString(),
    scopes: ['*'],
  }
  const uncovered: string[] = []
  for (const database of new Set([settings.database, ...databasesOf(settings)])) {
    await issuing.use(database, signal, async (session) => {
      await session.run(issuing.begin)
      uncovered.push(...(await rehearse(session, settings, server, database, values)))
      await session.run(['ROLLBACK'])
    })
  }
  return [
    ...(server.superuser ? [SUPERUSER] : []),
    ...(way === 'direct' && !server.superuser && settings.grant !== 'statements' ? [FUNCTIONS] : []),
    ...(settings.password !== undefined && !issuing.askedPassword ? [TRUSTING] : []),
    ...uncovered,
  ]
}

/** Returns warnings of what the groups of this database do not cover. Roles are made and ended in the main one only. */
async function rehearse(
  session: Session,
  settings: Config,
  server: Server,
  database: string,
  values: NewRole,
): Promise<readonly string[]> {
  const { way, login, version } = server
  const { reassign_owned_to: reassignTo } = settings
  const isMain = database === settings.database
  const advice =
    version < 160_000
      ? `ALTER ROLE ${login} CREATEROLE INHERIT`
      : `ALTER ROLE ${login} CREATEROLE; GRANT CREATE ON DATABASE ${quoteIdentifier(settings.database)} TO ${login}`
  const run = (statements: readonly string[]) => session.run(statements).catch(withAdvice(advice))
  const creators = server.creators && isMain
  await run(prepareStatements(settings, { ...server, creators }, database))
  const refreshed = replyOf<Refreshed>(await session.run(refreshStatements(settings, server, database)))
  const warnings = requireCovered(database, refreshed)
  if (!isMain) return warnings
  const groups = allGroups(settings).filter((group) => group.database === database)
  const names = groups.map((group) => roleOfGroup(server, settings, group))
  await run(issueStatements(server, values, names))
  await runStatements(session, settings, server, values)

  // Something to disown, so that the end takes every step.
  const [large] = await session.run(['SELECT lo_create(0) AS oid'])
  await session.run([`GRANT SELECT ON LARGE OBJECT ${large?.['oid']} TO ${quoteIdentifier(values.role)}`])
  const disown = invoke(way, 'disown', { p_role: values.role, p_reassign: reassignTo })
  for (let state = ''; state !== 'gone'; ) {
    state = replyOf<{ state: string }>(await run(revokeStatements(server, values.role))).state
    if (state !== 'owned') continue
    const kept = replyOf<Record<'state' | 'code' | 'message', string>>(await run(disown))
    if (kept.state !== 'kept') continue
    const join = `GRANT ${quoteIdentifier(reassignTo ?? '')} TO ${login} ("reassign_owned_to")`
    throw lacking(reassignTo === undefined ? advice : join, { detail: `${kept.code}: ${kept.message}` })
  }
  return warnings
}

/** A schema or database that is out of reach is a mistake; of tables the administrator is warned. */
function requireCovered(database: string, { count, uncovered, absent, closed, remedy }: Refreshed): string[] {
  if (count === 0) return []
  const where = quoteIdentifier(database)
  if (absent !== null) {
    throw misconfigured(`In ${where} there is no schema ${quoteIdentifier(absent)}.`)
  }
  if (closed && remedy !== null) throw lacking(remedy, { detail: uncovered.join(', ') })
  const more = count > uncovered.length ? ` and ${count - uncovered.length} more` : ''
  const run = remedy === null ? '' : ` Run: ${remedy}`
  return [`Credentials do not reach everything in ${where}: ${uncovered.join(', ')}${more}.${run}`]
}

/** A refused login is no missing privilege. */
function withAdvice(advice: string): (error: unknown) => readonly Row[] {
  return (error) => {
    if (toBackendError(error).fault !== 'denied' || stateOf(error)?.startsWith('28') === true) throw error
    throw lacking(advice, { detail: stateOf(error) ?? 'no SQLSTATE', cause: error })
  }
}

function lacking(advice: string, why: { detail?: string; cause?: unknown } = {}): BackendError {
  return denied(`The role that Mayfly uses lacks a privilege. Run: ${advice}`, why)
}
