import { randomBytes } from 'node:crypto'
import { BackendError, type Host } from '../kind.ts'
import { type Config, iterationsOf } from './config.ts'
import { sqlState, stateOf, toBackendError } from './faults.ts'
import { replyOf } from './invoke.ts'
import { createStatements, type RoleValues, runStatements } from './issue.ts'
import { allGroups, type Group } from './plan.ts'
import { disownStatements, revokeStatements } from './revoke.ts'
import { scramVerifier } from './scram.ts'
import { requireSetup, roleOfGroup, type Server } from './server.ts'
import { type Session, within } from './session.ts'
import { quoteIdentifier } from './statements.ts'
import { prepareStatements, type Refreshed, refreshStatements, type Upstream } from './upstream.ts'

/** How long the rehearsed role would live, had it ever been committed. */
const REHEARSED_MS = 60_000

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
  requireCreateRole(server)
  const values = {
    role: `mf_${randomBytes(16).toString('hex').slice(0, 26)}`,
    verifier: await scramVerifier(randomBytes(32).toString('base64url'), iterationsOf(settings)),
    expiresAt: host.now() + REHEARSED_MS,
    scopes: ['*'],
  }
  const groups = allGroups(settings)
  const warnings = [...warningsOf(server, settings, issuing.askedPassword)]
  for (const database of new Set([settings.database, ...groups.map((group) => group.database)])) {
    const here = groups.filter((group) => group.database === database)
    const missing = await within(issuing, database, signal, 'ROLLBACK', (session) =>
      rehearse(session, upstream, server, here, database === settings.database ? values : undefined),
    )
    warnings.push(...missing)
  }
  return warnings
}

const FUNCTIONS =
  'Mayfly creates roles with rights of its own (CREATEROLE). The functions that "mayfly backend setup-sql postgres" prints need none.'
const SUPERUSER = `Mayfly logs in as a superuser, who can run programs on the server of the database. Use a role that may only execute the functions that "mayfly backend setup-sql postgres" prints, or one with CREATEROLE that grants only what credentials need.`
const TRUSTING =
  'PostgreSQL never asked for the password, so it was not checked: pg_hba.conf trusts this login, and perhaps those of credentials.'

function* warningsOf(server: Server, settings: Config, askedPassword: boolean): Iterable<string> {
  if (server.superuser) yield SUPERUSER
  else if (server.way === 'direct' && settings.grant !== 'statements') yield FUNCTIONS
  if (settings.password !== undefined && !askedPassword) yield TRUSTING
}

function requireCreateRole(server: Server): void {
  if (server.way === 'functions' || server.createRole) return
  throw lacking(
    `ALTER ROLE ${server.login} CREATEROLE, or, better, the script that "mayfly backend setup-sql postgres" prints`,
  )
}

/** Returns warnings of what the groups of this database do not cover. Roles are made and ended in the main one only. */
async function rehearse(
  session: Session,
  { settings }: Upstream,
  server: Server,
  groups: readonly Group[],
  values: RoleValues | undefined,
): Promise<readonly string[]> {
  const advice =
    server.version < 160_000
      ? `ALTER ROLE ${server.login} CREATEROLE INHERIT`
      : `ALTER ROLE ${server.login} CREATEROLE; GRANT CREATE ON DATABASE ${quoteIdentifier(settings.database)} TO ${server.login}`
  const warnings: string[] = []
  if (server.way === 'direct') {
    const here = values === undefined ? { ...server, creators: false } : server
    await step(advice, () => session.run(prepareStatements(settings, here, groups)))
  }
  for (const group of groups) {
    const reply = await session.run(refreshStatements(settings, server, group))
    warnings.push(...requireCovered(server, settings, group, replyOf<Refreshed>(reply)))
  }
  if (values === undefined) return warnings
  const names = groups.map((group) => roleOfGroup(server, settings, group))
  await step(advice, () => session.run(createStatements(server, values, names)))
  if (settings.grant === 'statements') await runStatements(session, settings, server, values)
  const reassignTo = settings.reassign_owned_to
  if (reassignTo !== undefined) await requireHarmless(session, reassignTo)
  await rehearseEnd(session, server, settings, values.role, advice)
  return warnings
}

/** The role is granted something, so that its end takes every step. */
async function rehearseEnd(
  session: Session,
  server: Server,
  { reassign_owned_to: reassignTo }: Config,
  role: string,
  advice: string,
): Promise<void> {
  const [large] = await session.run(['SELECT lo_create(0) AS oid'])
  const object = `LARGE OBJECT ${large?.['oid']}`
  await session.run([`GRANT SELECT ON ${object} TO ${quoteIdentifier(role)}`])
  const revoke = revokeStatements(server, role)
  const disown = disownStatements(server, role, reassignTo)
  for (let state = ''; state !== 'gone'; ) {
    state = replyOf<{ state: string }>(await step(advice, () => session.run(revoke))).state
    if (state !== 'owned') continue
    const rows = await step(advice, () => session.run(disown))
    const reply = replyOf<{ state: string; code?: string; message?: string }>(rows)
    if (reply.state !== 'kept') continue
    const join =
      reassignTo === undefined
        ? advice
        : `GRANT ${quoteIdentifier(reassignTo)} TO ${server.login} ("reassign_owned_to")`
    throw lacking(join, `${reply.code}: ${reply.message}`)
  }
}

/** A schema or database that is out of reach is a mistake; of tables the administrator is warned. */
function requireCovered(
  { login, way }: Server,
  { schemas }: Config,
  { database, access }: Group,
  { count, uncovered }: Refreshed,
): readonly string[] {
  if (count === 0) return []
  const more = count > uncovered.length ? ` and ${count - uncovered.length} more` : ''
  const what = `Credentials do not reach everything in ${quoteIdentifier(database)}: ${uncovered.join(', ')}${more}.`
  const missing = uncovered.find((one) => one.endsWith('which does not exist'))
  if (missing !== undefined)
    throw new BackendError(
      'misconfigured',
      `In ${quoteIdentifier(database)} there is no ${missing.replace(', which does not exist', '')}.`,
    )
  if (way === 'functions') return [what]
  const list = schemas.map(quoteIdentifier).join(', ')
  const privileges = access === 'write' ? 'SELECT, INSERT, UPDATE, DELETE' : 'SELECT'
  const sequences = access === 'write' ? 'USAGE, SELECT, UPDATE' : 'SELECT'
  const run =
    `in ${quoteIdentifier(database)}: GRANT CONNECT ON DATABASE ${quoteIdentifier(database)} TO ${login} WITH GRANT OPTION; ` +
    `GRANT USAGE ON SCHEMA ${list} TO ${login} WITH GRANT OPTION; ` +
    `GRANT ${privileges} ON ALL TABLES IN SCHEMA ${list} TO ${login} WITH GRANT OPTION; ` +
    `GRANT ${sequences} ON ALL SEQUENCES IN SCHEMA ${list} TO ${login} WITH GRANT OPTION`
  if (uncovered.some((one) => /^(schema|CONNECT) /.test(one))) throw lacking(run, uncovered.join(', '))
  return [`${what} Run: ${run}`]
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

/** A refusal becomes the statement that would lift it. */
async function step<T>(advice: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    if (toBackendError(error).fault !== 'denied' || stateOf(error)?.startsWith('28') === true) throw error
    throw lacking(advice, sqlState(error), error)
  }
}

function lacking(advice: string, detail?: string, cause?: unknown): BackendError {
  return new BackendError('denied', `The role that Mayfly uses lacks a privilege. Run: ${advice}`, {
    ...(detail === undefined ? {} : { detail }),
    ...(cause === undefined ? {} : { cause }),
  })
}
