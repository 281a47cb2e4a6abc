import { randomBytes } from 'node:crypto'
import { type BackendError, misconfigured, unsupported } from '../../domain/backend-error.ts'
import { hostPort } from '../../domain/network/address.ts'
import { isScope } from '../../domain/scope.ts'
import type { Issued, IssueRequest } from '../kind.ts'
import { tlsOf } from '../server-fields.ts'
import type { Session } from './client.ts'
import { type Config, databasesOf } from './config.ts'
import { stateOf } from './faults.ts'
import { invoke } from './invoke.ts'
import { creatorOf, creatorSchema, type Group, planGroups } from './plan.ts'
import { scramVerifier } from './scram.ts'
import type { Server } from './server.ts'
import { fillStatement, quoteIdentifier, quoteList, quoteLiteral } from './statements.ts'
import type { Upstream } from './upstream.ts'

/** A role (also by SET ROLE), a function or a schema does not exist that did before. */
const GONE = new Set(['42704', '22023', '42883', '3F000'])

/** A login role to create. */
export interface NewRole {
  readonly role: string
  /** The form that the server stores and may log; never the password itself. */
  readonly verifier: string
  /** ISO 8601 in UTC is read the same under every DateStyle and TimeZone. */
  readonly until: string
  readonly scopes: readonly string[]
}

/** Creates the login role `role`, in one transaction, as a member of the groups that its scopes name. */
export async function issueRole(
  upstream: Upstream,
  role: string,
  { scopes, expiresAt }: IssueRequest<unknown>,
  signal: AbortSignal,
): Promise<Issued> {
  const { settings } = upstream
  // The core has checked them; own statements rely on it (no quote, no backslash, no dollar).
  if (!scopes.every(isScope)) throw unsupported('A scope is not well formed.')
  const groups = planGroups(settings, scopes)
  const password = randomBytes(32).toString('base64url')
  const verifier = await scramVerifier(password, settings.scram_iterations)
  const values = { role, verifier, until: new Date(expiresAt).toISOString(), scopes }
  try {
    await create(upstream, groups, values, signal)
  } catch (error) {
    if (settings.grant === 'statements' || !GONE.has(stateOf(error) ?? '')) throw error
    upstream.forget()
    await create(upstream, groups, values, signal)
  }
  const fields = fieldsOf(settings, role, password, groups)
  return { fields, handle: { username: role }, facts: { username: role } }
}

async function create(
  upstream: Upstream,
  groups: readonly Group[],
  values: NewRole,
  signal: AbortSignal,
): Promise<void> {
  const { settings, issuing } = upstream
  const server = await upstream.server(issuing, signal)
  const roles = await upstream.ready(server, groups)
  // COMMIT is a message of its own: if this call is abandoned before, the role never exists; after, a revocation finds the role or
  // waits for it. One message with all would be carried out by the server even when nobody waits for it any more.
  await issuing.use(settings.database, signal, async (session) => {
    await session.run([...issuing.begin, ...issueStatements(server, values, roles)])
    if (values.scopes.length > 0) await runStatements(session, settings, server, values)
    await session.run(['COMMIT'])
  })
}

export function issueStatements(server: Server, values: NewRole, groups: readonly string[]) {
  return invoke(server.way, 'issue', {
    p_role: values.role,
    p_verifier: values.verifier,
    p_until: values.until,
    p_groups: groups,
    p_schema: creatorSchema(server),
    p_creator: server.creators ? creatorOf(server, values.role) : undefined,
  })
}

/**
 * The administrator's own statements, one at a time, as Mayfly's login. Where a creator made the role, the login may change it
 * for as long as they take. Throws `misconfigured` with the table when its access list is full.
 */
export async function runStatements(
  session: Session,
  { statements }: Config,
  server: Server,
  { role, verifier, until, scopes }: NewRole,
): Promise<void> {
  if (statements === undefined) return
  const name = quoteIdentifier(role)
  const creator = [creatorSchema(server), creatorOf(server, role)].map(quoteIdentifier).join('.')
  const asCreator = (statement: string) =>
    server.creators ? [`SELECT ${creator}(${quoteLiteral(statement)})`] : []
  const [password, expiration] = [verifier, until].map(quoteLiteral) as [string, string]
  const values = { name, password, expiration, scopes: quoteList(scopes) }
  await session.run([
    ...asCreator(`GRANT ${name} TO ${server.login} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE`),
    'SAVEPOINT own',
  ])
  for (const statement of statements) {
    try {
      await session.query(fillStatement(statement, values))
    } catch (error) {
      throw (await tooManyGrants(session, error)) ?? error
    }
  }
  // They may take another on, for which their connection would be kept.
  await session.run(['RESET ROLE', ...asCreator(`REVOKE ${name} FROM ${server.login}`)])
}

/**
 * `program_limit_exceeded` of a GRANT: the access list of a table (`pg_class.relacl`) must fit into its row of 8 kB, which is
 * full at about 2,400 grantees. The server does not say of which table: it is the one with the longest list.
 */
async function tooManyGrants(session: Session, error: unknown): Promise<BackendError | undefined> {
  if (stateOf(error) !== '54000' || !(error instanceof Error && /row is too big/.test(error.message))) return
  const [row] = await session.run([
    'ROLLBACK TO own',
    `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relacl IS NOT NULL ORDER BY pg_column_size(c.relacl) DESC LIMIT 1`,
  ])
  return misconfigured(
    `The access list of the table ${String(row?.['name'])} is full: every credential has its own grant there. Grant a role once, and let the statements grant that role: GRANT app_reader TO {{name}}.`,
    { detail: error.message, cause: error },
  )
}

function fieldsOf(settings: Config, username: string, password: string, groups: readonly Group[]) {
  const host = settings.connect_host ?? settings.host
  const port = settings.connect_port ?? settings.port
  const granted = groups.map((group) => group.database)
  const [first] = [settings.database, ...databasesOf(settings)].filter((name) => granted.includes(name))
  const database = first ?? settings.database
  // verify-full needs a file of roots on the agent's side, which we cannot know of: it may strengthen this.
  const secured = tlsOf(settings) === 'disable' ? {} : { sslmode: 'require' }
  const query = 'sslmode' in secured ? '?sslmode=require' : ''
  const login = `${encodeURIComponent(username)}:${encodeURIComponent(password)}`
  const url = `postgresql://${login}@${hostPort(host, port)}/${encodeURIComponent(database)}${query}`
  return { username, password, host, port, database, url, ...secured }
}
