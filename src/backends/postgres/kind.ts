import { randomBytes } from 'node:crypto'
import Type from 'typebox'
import { isId } from '../../domain/ids.ts'
import { isScope } from '../../domain/scope.ts'
import {
  type Backend,
  BackendError,
  type Handle,
  type Host,
  type Issued,
  type IssueRequest,
  type Kind,
} from '../kind.ts'
import { connect } from './client.ts'
import { type Config, config, databasesOf, requireConsistent, tlsOf } from './config.ts'
import { type Access, createRole, grantConnect, grantSchemas, planAccess, runStatements } from './grants.ts'
import { preflight } from './preflight.ts'
import { revokeRole } from './revoke.ts'
import { ROLE_PREFIX } from './roles.ts'
import { scramVerifier } from './scram.ts'
import type { Connections } from './session.ts'

const params = Type.Object({}, { additionalProperties: false })
type Params = Type.Static<typeof params>

const PASSWORD_BYTES = 32

/** PostgreSQL 13 and later: one login role per credential, ended exactly. */
export const postgres: Kind<typeof config, typeof params> = {
  type: 'postgres',
  title: 'PostgreSQL',
  config,
  params,
  limits: {},
  revocation: 'exact',
  upstream: true,
  scopes: {
    valid: isScope,
    examples: ['<database>:read', '<database>:write', '<database>', '*'],
    help:
      '<database>, <database>:read or <database>:write of the databases that the backend grants; * is all of them. ' +
      'Without :read or :write it is all that the backend grants. A read-only backend refuses :write. ' +
      'Own statements receive the scopes as they are, in {{scopes}}.',
  },
  async complete(settings) {
    requireConsistent(settings)
    return settings
  },
  open: openPostgres,
}

async function openPostgres(settings: Config, host: Host): Promise<Backend<Params>> {
  requireConsistent(settings)
  const issuing = await connect(settings, host)
  const revoking = await connect(settings, host)
  return {
    check: (signal) => preflight(issuing, settings, host.now(), signal),
    issue: async (request, signal) => {
      // Without it the issue succeeds, too, but a holder who takes every connection could only be ended later.
      const kept = revoking.keepOne(signal).catch(() => undefined)
      const issued = await issue({ issuing, revoking }, settings, request, signal)
      await kept
      return issued
    },
    revoke: async (handle, signal) => revokeRole(revoking, settings, roleOf(handle), signal),
    recover: (credentialId) => ({ username: roleName(credentialId) }),
    async [Symbol.asyncDispose]() {
      await Promise.all([issuing, revoking].map((connections) => connections[Symbol.asyncDispose]()))
    },
  }
}

/** `mf_` and the body of the credential's id: 29 characters that need no quoting. */
function roleName(credentialId: string): string {
  if (!isId('credential', credentialId)) {
    throw new BackendError('misconfigured', 'The credential id is not well formed.')
  }
  return `${ROLE_PREFIX}${credentialId.slice('cred_'.length)}`
}

/** Only roles of the form that we create are ever dropped. */
function roleOf(handle: Handle): string {
  const username = handle['username']
  const ours = typeof username === 'string' && username.startsWith(ROLE_PREFIX)
  if (!ours || !isId('credential', `cred_${username.slice(ROLE_PREFIX.length)}`)) {
    throw new BackendError('misconfigured', 'The handle does not name a role of Mayfly.')
  }
  return username
}

async function issue(
  { issuing, revoking }: { readonly issuing: Connections; readonly revoking: Connections },
  settings: Config,
  request: IssueRequest<Params>,
  signal: AbortSignal,
): Promise<Issued> {
  const role = roleName(request.credentialId)
  // The core has checked them; own statements rely on it (no quote, no backslash, no dollar).
  if (!request.scopes.every(isScope)) throw new BackendError('unsupported', 'A scope is not well formed.')
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  const verifier = await scramVerifier(password)
  const plan =
    settings.grant === 'statements' ? new Map<string, Access>() : planAccess(settings, request.scopes)
  const values = { role, verifier, expiresAt: request.expiresAt, scopes: request.scopes }

  await issuing.change(settings.database, signal, async (session) => {
    await session.run([createRole(values)])
    if (plan.size > 0) await grantConnect(session, role, [...plan.keys()])
    const access = plan.get(settings.database)
    if (access !== undefined) await grantSchemas(session, role, settings.schemas, access)
    if (settings.grant === 'statements' && request.scopes.length > 0) {
      await runStatements(session, settings.statements ?? [], values)
    }
  })
  try {
    for (const [database, access] of plan) {
      if (database === settings.database) continue
      await issuing.change(database, signal, (session) =>
        grantSchemas(session, role, settings.schemas, access),
      )
    }
  } catch (error) {
    await undo(revoking, settings, role)
    throw error
  }
  return {
    fields: fieldsOf(settings, role, password, mainDatabase(settings, plan)),
    handle: { username: role },
    facts: { username: role },
  }
}

/**
 * The role exists but its grants are incomplete. If it cannot be dropped, the failure must not count as certain, even if
 * the server refused the grants: it is `unavailable`, so that Mayfly revokes what `recover` names.
 */
async function undo(connections: Connections, settings: Config, role: string): Promise<void> {
  try {
    await revokeRole(connections, settings, role, AbortSignal.timeout(connections.timeoutMs))
  } catch (error) {
    const detail = error instanceof BackendError ? `${role}: ${error.detail ?? error.message}` : role
    throw new BackendError('unavailable', 'A half-made role could not be dropped yet.', {
      detail,
      cause: error,
    })
  }
}

function mainDatabase(settings: Config, plan: ReadonlyMap<string, Access>): string {
  if (plan.size === 0 || plan.has(settings.database)) return settings.database
  return databasesOf(settings).find((database) => plan.has(database)) ?? settings.database
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
