import { randomBytes } from 'node:crypto'
import { misconfigured } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { namedAccounts } from '../account-name.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Host, ListedPage, Rotation } from '../kind.ts'
import { databaseUse } from '../uses.ts'
import { connect } from './client.ts'
import { type Config, config, requireConsistent } from './config.ts'
import { replyOf } from './invoke.ts'
import { issueRole } from './issue.ts'
import { canGrant, planGroups } from './plan.ts'
import { preflight } from './preflight.ts'
import { listOf } from './procedures.ts'
import { revokeRole } from './revoke.ts'
import { scramVerifier } from './scram.ts'
import { setupScript, uninstallScript } from './setup-sql.ts'
import { quoteLiteral } from './statements.ts'
import { createUpstream, retire, type Upstream } from './upstream.ts'

/** Their names have 29 characters that need no quoting. */
const roles = namedAccounts('username', 'a role')

const PAGE = 500

/** PostgreSQL 15 and later: one login role per credential, a member of the backend's group roles, ended exactly. */
export const postgres = defineKind({
  type: 'postgres',
  title: 'PostgreSQL',
  config,
  revocation: 'exact',
  scopes: {
    valid: isScope,
    gives: canGrant,
    forms: [
      { form: '<database>:read', gives: 'read the tables of a database' },
      { form: '<database>:write', gives: 'read and change the tables of a database' },
      { form: '<database>', gives: 'do in a database all that the backend grants' },
      { form: '*', gives: 'do so in all databases of the backend' },
    ],
    help:
      '<database>, <database>:read or <database>:write of the databases that the backend grants; * is all of them. ' +
      'Without :read or :write it is all that the backend grants. A read-only backend refuses :write. ' +
      'Own statements receive the scopes as they are, in {{scopes}}.',
  },
  environment: {
    PGHOST: '{host}',
    PGPORT: '{port}',
    PGUSER: '{username}',
    PGPASSWORD: '{password}',
    PGDATABASE: '{database}',
    // libpq's default, prefer, would send everything in clear if the server seemed to have no TLS (libpq, SSL Mode Descriptions).
    PGSSLMODE: '{sslmode}',
  },
  // With own statements only they know.
  uses: (settings, scopes) =>
    databaseUse(
      'postgres',
      settings,
      settings.grant === 'statements'
        ? undefined
        : planGroups(settings, scopes).map(({ database }) => database),
    ),
  validate: requireConsistent,
  setup: {
    needs: ['database', 'username'],
    install: setupScript,
    uninstall: uninstallScript,
  },
  open: openPostgres,
})

async function openPostgres(settings: Config, host: Host): Promise<Opened> {
  const issuing = await connect(settings, host)
  const revoking = await connect(settings, host)
  const upstream = createUpstream(settings, host, { issuing, revoking })
  const rotation = rotationOf(upstream)
  return {
    check: (signal) => preflight(upstream, host, signal),
    issue: async (request, signal) => {
      // Without it the issue succeeds, too, but a holder who takes every connection could only be ended later.
      const kept = revoking.keepOne(signal).catch(() => undefined)
      const issued = await issueRole(upstream, roles.nameOf(request.credentialId), request, signal)
      await kept
      return issued
    },
    revoke: async (handle, signal) => revokeRole(upstream, roles.nameIn(handle), signal),
    recover: roles.recover,
    list: (after, signal) => listRoles(upstream, after, signal),
    ...(rotation === undefined ? {} : { rotation }),
    keepUp: upstream.keepUp,
    retire: (signal) => retire(upstream, [], signal),
    async [Symbol.asyncDispose]() {
      await Promise.all([issuing, revoking].map((connections) => connections[Symbol.asyncDispose]()))
    },
  }
}

/** Everybody may read pg_roles; the function keeps what the setup script promises in one place. */
async function listRoles(
  { settings, revoking, server: ask }: Upstream,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ListedPage> {
  const { way } = await ask(revoking, signal)
  const [from, limit] = [quoteLiteral(after ?? ''), String(PAGE)]
  const list = way === 'functions' ? `mayfly.list(${from}, ${limit})` : listOf(from, limit)
  const rows = await revoking.transact(settings.database, signal, [`SELECT ${list}::text AS reply`])
  const found = replyOf<readonly { name: string; until: string | null }[]>(rows)
  const items = found.flatMap(({ name, until }) => roles.listed(name, Date.parse(until ?? '')))
  const last = found.length < PAGE ? undefined : found.at(-1)?.name
  return { items, ...(last === undefined ? {} : { next: last }) }
}

/**
 * Every role may change its own password (PostgreSQL, ALTER ROLE), so this needs no privilege, and no function of the setup
 * script. The old password ends with the change; open sessions stay. Undefined for a login without a password.
 */
function rotationOf({ settings, issuing }: Upstream): Rotation | undefined {
  if (settings.password === undefined) return undefined
  return {
    propose: async () => ({ password: randomBytes(32).toString('base64url') }) satisfies Partial<Config>,
    async adopt({ password }, signal) {
      if (password === undefined) throw misconfigured('There is no new password.')
      const verifier = quoteLiteral(await scramVerifier(password))
      await issuing.transact(settings.database, signal, [`ALTER ROLE SESSION_USER PASSWORD ${verifier}`])
    },
  }
}
