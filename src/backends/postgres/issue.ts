import { randomBytes } from 'node:crypto'
import { isScope } from '../../domain/scope.ts'
import { BackendError, type Issued, type IssueRequest } from '../kind.ts'
import { type Config, databasesOf, iterationsOf, tlsOf } from './config.ts'
import { sqlState, stateOf } from './faults.ts'
import { creatorOf, creatorSchema, type Group, planGroups } from './plan.ts'
import { scramVerifier } from './scram.ts'
import type { Server } from './server.ts'
import { preamble, type Session } from './session.ts'
import { fillStatement, quoteIdentifier, quoteList, quoteLiteral } from './statements.ts'
import type { Upstream } from './upstream.ts'

const PASSWORD_BYTES = 32

/** A role (also by SET ROLE), a function or a schema does not exist that did before. */
const GONE = new Set(['42704', '22023', '42883', '3F000'])

export interface RoleValues {
  readonly role: string
  /** The form that the server stores and may log; never the password itself. */
  readonly verifier: string
  /** Epoch ms. */
  readonly expiresAt: number
  readonly scopes: readonly string[]
}

/** Creates the login role `role`, in one transaction, as a member of the groups that its scopes name. */
export async function issueRole(
  upstream: Upstream,
  role: string,
  request: IssueRequest<unknown>,
  signal: AbortSignal,
): Promise<Issued> {
  const { settings } = upstream
  // The core has checked them; own statements rely on it (no quote, no backslash, no dollar).
  if (!request.scopes.every(isScope)) throw new BackendError('unsupported', 'A scope is not well formed.')
  const plan = planGroups(settings, request.scopes)
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  const verifier = await scramVerifier(password, iterationsOf(settings))
  const values = { role, verifier, expiresAt: request.expiresAt, scopes: request.scopes }
  try {
    await create(upstream, plan, values, signal)
  } catch (error) {
    if (settings.grant === 'statements' || !GONE.has(stateOf(error) ?? '')) throw error
    upstream.forget()
    await create(upstream, plan, values, signal)
  }
  const fields = fieldsOf(settings, role, password, mainDatabase(settings, plan))
  return { fields, handle: { username: role }, facts: { username: role } }
}

async function create(
  upstream: Upstream,
  plan: readonly Group[],
  values: RoleValues,
  signal: AbortSignal,
): Promise<void> {
  const { settings, issuing } = upstream
  const server = await upstream.server(issuing, signal)
  const groups = await upstream.ready(server, plan)
  const statements = createStatements(server, values, groups)
  // COMMIT is a message of its own: if this call is abandoned before, the role never exists; after, a revocation finds the role or
  // waits for it. One message with all would be carried out by the server even when nobody waits for it any more.
  await issuing.use(settings.database, signal, async (session) => {
    await session.run(['BEGIN', ...preamble(issuing.timeoutMs), ...statements])
    if (settings.grant === 'statements' && values.scopes.length > 0)
      await runStatements(session, settings, server, values)
    await session.run(['COMMIT'])
  })
}

/** PostgreSQL keeps microseconds; ISO 8601 in UTC is read the same under every DateStyle and TimeZone. */
const until = ({ expiresAt }: RoleValues) => quoteLiteral(new Date(expiresAt).toISOString())

/** SET FALSE, where the server knows it (16): a member cannot become the group, whose objects would outlive it. */
export function createStatements(
  server: Server,
  values: RoleValues,
  groups: readonly string[],
): readonly string[] {
  const { role, verifier } = values
  if (server.way === 'functions') {
    return [
      `SELECT mayfly.issue(${quoteLiteral(role)}, ${quoteLiteral(verifier)}, ${until(values)}, ${quoteList(groups)})`,
    ]
  }
  const name = quoteIdentifier(role)
  const options = server.version >= 160_000 ? ' WITH INHERIT TRUE, SET FALSE, ADMIN FALSE' : ''
  return [
    `CREATE ROLE ${name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD ${quoteLiteral(verifier)} VALID UNTIL ${until(values)}`,
    ...(groups.length === 0 ? [] : [`GRANT ${groups.map(quoteIdentifier).join(', ')} TO ${name}${options}`]),
  ].map((statement) => asCreator(server, role, statement))
}

/** The role's creator executes the statement, where it has one. */
function asCreator(server: Server, role: string, statement: string): string {
  if (!server.creators) return statement
  const creator = quoteIdentifier(creatorOf(server, role))
  return `SELECT ${quoteIdentifier(creatorSchema(server))}.${creator}(${quoteLiteral(statement)})`
}

/**
 * The administrator's own statements, one at a time, as Mayfly's login. Where a creator made the role, the login may change it
 * for as long as they take. Throws `misconfigured` with the table when its access list is full.
 */
export async function runStatements(
  session: Session,
  { statements = [] }: Config,
  server: Server,
  values: RoleValues,
): Promise<void> {
  const name = quoteIdentifier(values.role)
  const filled = {
    name,
    password: quoteLiteral(values.verifier),
    expiration: until(values),
    scopes: quoteList(values.scopes),
  }
  const own = (statement: string) => (server.creators ? [asCreator(server, values.role, statement)] : [])
  await session.run([
    ...own(`GRANT ${name} TO ${server.login} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE`),
    'SAVEPOINT own',
  ])
  for (const statement of statements) {
    try {
      await session.query(fillStatement(statement, filled))
    } catch (error) {
      throw (await tooManyGrants(session, error)) ?? error
    }
  }
  // They may take another on, for which their connection would be kept.
  await session.run(['RESET ROLE', ...own(`REVOKE ${name} FROM ${server.login}`)])
}

/**
 * `program_limit_exceeded` of a GRANT: the access list of a table (`pg_class.relacl`) must fit into its row of 8 kB, which is
 * full at about 2,400 grantees. The server does not say of which table: it is the one with the longest list.
 */
async function tooManyGrants(session: Session, error: unknown): Promise<BackendError | undefined> {
  if (sqlState(error) !== '54000' || !(error instanceof Error && /row is too big/.test(error.message))) return
  await session.run(['ROLLBACK TO own'])
  const [row] = await session.query(
    `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relacl IS NOT NULL ORDER BY pg_column_size(c.relacl) DESC LIMIT 1`,
  )
  return new BackendError(
    'misconfigured',
    `The access list of the table ${String(row?.['name'])} is full: every credential has its own grant there. Grant a role once, and let the statements grant that role: GRANT app_reader TO {{name}}.`,
    { detail: error.message, cause: error },
  )
}

function mainDatabase(settings: Config, plan: readonly Group[]): string {
  const planned = new Set(plan.map(({ database }) => database))
  if (planned.size === 0 || planned.has(settings.database)) return settings.database
  return databasesOf(settings).find((database) => planned.has(database)) ?? settings.database
}

function fieldsOf(settings: Config, username: string, password: string, database: string) {
  const host = settings.connect_host ?? settings.host
  const port = settings.connect_port ?? settings.port
  const authority = host.includes(':') ? `[${host}]` : host
  // verify-full needs a file of roots on the agent's side, which we cannot know of: it may strengthen this.
  const query = tlsOf(settings) === 'disable' ? '' : '?sslmode=require'
  const login = `${encodeURIComponent(username)}:${encodeURIComponent(password)}`
  const url = `postgresql://${login}@${authority}:${port}/${encodeURIComponent(database)}${query}`
  return { username, password, host, port, database, url }
}
