import { BackendError } from '../kind.ts'
import type { Config } from './config.ts'
import { type Access, allGroups, type Group, groupName, type Owner } from './plan.ts'
import type { Way } from './procedures.ts'
import type { Session } from './session.ts'
import { FUNCTIONS_VERSION } from './setup-sql.ts'
import { quoteIdentifier } from './statements.ts'

/** A group role that the setup script has made for Mayfly's login. */
interface InstalledGroup {
  readonly name: string
  readonly database: string
  readonly access: Access
  readonly schemas: readonly string[]
  readonly reassign_to: string | null
}

/** What the server is, and which way is in force. */
export interface Server extends Owner {
  readonly way: Way
  /** `server_version_num`: 150004 is 15.4. */
  readonly version: number
  /** Mayfly's login, as a quoted identifier. */
  readonly login: string
  readonly superuser: boolean
  readonly createRole: boolean
  /** Credentials are made by creator roles (see plan.ts). */
  readonly creators: boolean
  /** Of the installed functions. */
  readonly functionsVersion: number
  readonly groups: readonly InstalledGroup[]
}

/**
 * Looks for the functions of the setup script. Only a schema that a superuser owns counts: anybody else's functions would run
 * with our rights.
 */
export async function inspectServer(session: Session, settings: Config, uid: string): Promise<Server> {
  const [found] = await session.query(
    `SELECT current_setting('server_version_num')::int AS version, r.rolname, r.rolsuper, r.rolcreaterole, EXISTS (
        SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
          JOIN pg_roles o ON o.oid = n.nspowner JOIN pg_roles f ON f.oid = p.proowner
         WHERE n.nspname = 'mayfly' AND p.proname = 'inspect' AND p.pronargs = 0 AND o.rolsuper AND f.rolsuper
           AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')) AS installed
       FROM pg_roles r WHERE r.rolname = session_user`,
  )
  const version = Number(found?.['version'])
  if (version < 150_000) throw new BackendError('unsupported', 'PostgreSQL 15 or later is needed.')
  const superuser = found?.['rolsuper'] === true
  const facts = {
    uid,
    version,
    superuser,
    login: quoteIdentifier(String(found?.['rolname'])),
    createRole: superuser || found?.['rolcreaterole'] === true,
  }
  const direct: Server = {
    ...facts,
    way: 'direct',
    creators: version >= 160_000 && !superuser,
    functionsVersion: 0,
    groups: [],
  }
  // Own statements need rights of the login's own.
  if (found?.['installed'] !== true || settings.grant === 'statements') return direct
  const [row] = await session.query('SELECT mayfly.inspect() AS reply')
  const { version: functionsVersion, groups } = JSON.parse(String(row?.['reply']))
  // They may have been set up for another login: a superuser may execute everything.
  return groups.length === 0
    ? direct
    : { ...facts, way: 'functions', creators: false, functionsVersion, groups }
}

/** The role of a group. Throws `BackendError` (`misconfigured`) for one that the setup script has not made. */
export function roleOfGroup(server: Server, settings: Config, group: Group): string {
  return server.way === 'direct' ? groupName(server, group) : installed(server, settings, group).name
}

function installed(server: Server, settings: Config, { database, access }: Group): InstalledGroup {
  const found = server.groups.find(
    (one) =>
      one.database === database &&
      one.access === access &&
      JSON.stringify(one.schemas) === JSON.stringify(settings.schemas),
  )
  if (found !== undefined) return found
  throw new BackendError(
    'misconfigured',
    `The functions in the schema mayfly were not set up for ${access} access to ${quoteIdentifier(database)} with these schemas. ${SETUP}`,
  )
}

const SETUP = 'Run the script that "mayfly backend setup-sql postgres" prints for this configuration.'

/** Throws `BackendError` (`misconfigured`) when the installed functions do not match this version or the configuration. */
export function requireSetup(server: Server, settings: Config): void {
  if (server.way === 'direct') return
  if (server.functionsVersion !== FUNCTIONS_VERSION) {
    throw new BackendError(
      'misconfigured',
      `The functions in the schema mayfly have version ${server.functionsVersion}, and this Mayfly needs ${FUNCTIONS_VERSION}. ${SETUP}`,
    )
  }
  const groups = allGroups(settings).map((group) => installed(server, settings, group))
  const reassignTo = settings.reassign_owned_to ?? null
  if (groups.some(({ reassign_to }) => reassign_to !== reassignTo)) {
    throw new BackendError(
      'misconfigured',
      `The functions in the schema mayfly were set up with another "reassign_owned_to". ${SETUP}`,
    )
  }
}
