import { isScope } from '../../domain/scope.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Host } from '../kind.ts'
import { connect } from './client.ts'
import { type Config, config, requireConsistent } from './config.ts'
import { issueRole } from './issue.ts'
import { listRoles, roles } from './list.ts'
import { canGrant } from './plan.ts'
import { preflight } from './preflight.ts'
import { revokeRole } from './revoke.ts'
import { rotationOf } from './rotation.ts'
import { setupScript, uninstallScript } from './setup-sql.ts'
import { createUpstream, retire } from './upstream.ts'

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
