import { misconfigured, unsupported } from '../../domain/backend-error.ts'
import type { Connections } from './client.ts'
import type { Config } from './config.ts'
import { stateOf } from './faults.ts'
import { replyOf } from './invoke.ts'
import { allGroups, type Group, groupName, type Owner } from './plan.ts'
import type { Way } from './procedures.ts'
import { FUNCTIONS_VERSION, groupOfScript } from './setup-sql.ts'
import { quoteIdentifier, quoteLiteral } from './statements.ts'

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
  /** `reassign_owned_to` is a superuser or may create roles. */
  readonly mightyHeir: boolean
  readonly functions: Functions
}

/** The installed functions: their version, and the groups of Mayfly's login, with the role that inherits from each. */
interface Functions {
  readonly version: number
  readonly reassignTo: Readonly<Record<string, string | null>>
}

/**
 * Looks for the functions of the setup script. Only a schema that a superuser owns counts: anybody else's functions would run
 * with our rights.
 */
export async function inspectServer(
  connections: Connections,
  signal: AbortSignal,
  settings: Config,
  uid: string,
): Promise<Server> {
  const ask = (statement: string) => connections.transact(settings.database, signal, [statement])
  const [found] = await ask(
    `SELECT current_setting('server_version_num')::int AS version, r.rolname, r.rolsuper, r.rolcreaterole,
        EXISTS (SELECT FROM pg_roles h WHERE h.rolname = ${quoteLiteral(settings.reassign_owned_to ?? '')}
          AND (h.rolsuper OR h.rolcreaterole)) AS mighty_heir,
        EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
          JOIN pg_roles o ON o.oid = n.nspowner JOIN pg_roles f ON f.oid = p.proowner
         WHERE n.nspname = 'mayfly' AND p.proname = 'inspect' AND p.pronargs = 0 AND o.rolsuper AND f.rolsuper
           AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')) AS installed
       FROM pg_roles r WHERE r.rolname = session_user`,
  )
  const version = Number(found?.['version'])
  if (version < 150_000) throw unsupported('PostgreSQL 15 or later is needed.')
  const superuser = found?.['rolsuper'] === true
  // Own statements need rights of the login's own.
  const isInstalled = found?.['installed'] === true && settings.grant !== 'statements'
  const functions = isInstalled
    ? replyOf<Functions>(await ask('SELECT mayfly.inspect() AS reply'))
    : { version: 0, reassignTo: {} }
  // They may have been set up for another login: a superuser may execute everything.
  const way = Object.keys(functions.reassignTo).length > 0 ? 'functions' : 'direct'
  return {
    uid,
    way,
    version,
    login: quoteIdentifier(String(found?.['rolname'])),
    superuser,
    createRole: superuser || found?.['rolcreaterole'] === true,
    creators: way === 'direct' && version >= 160_000 && !superuser,
    mightyHeir: found?.['mighty_heir'] === true,
    functions,
  }
}

const SETUP = 'Run the script that "mayfly backend setup-sql postgres" prints for this configuration.'

/** `undefined_function`, `invalid_schema_name`, and no right to use the schema. */
const ABSENT = new Set(['42883', '3F000', '42501'])

/** What a call of the functions in this database failed with; says so if the script was not run there. */
export function explainAbsent(server: Server, database: string, error: unknown): unknown {
  if (server.way === 'direct' || !ABSENT.has(stateOf(error) ?? '')) return error
  return misconfigured(
    `Mayfly cannot use the functions in the schema mayfly of the database ${quoteIdentifier(database)}. ${SETUP}`,
    { cause: error },
  )
}

/** The role of a group. Throws `BackendError` (`misconfigured`) for one that the setup script has not made. */
export function roleOfGroup(server: Server, settings: Config, group: Group): string {
  if (server.way === 'direct') return groupName(server, group)
  const name = groupOfScript(settings, group)
  if (server.functions.reassignTo[name] !== undefined) return name
  const what = `${group.access} access to ${quoteIdentifier(group.database)} with these schemas`
  throw misconfigured(`The functions in the schema mayfly were not set up for ${what}. ${SETUP}`)
}

/** Throws `BackendError` (`misconfigured`) when the installed functions do not match this version or the configuration. */
export function requireSetup(server: Server, settings: Config): void {
  const { way, functions } = server
  if (way === 'direct') return
  const reassignTo = settings.reassign_owned_to ?? null
  const isOther = (group: Group) => functions.reassignTo[roleOfGroup(server, settings, group)] !== reassignTo
  let fault: string
  if (functions.version !== FUNCTIONS_VERSION) {
    fault = `have version ${functions.version}, and this Mayfly needs ${FUNCTIONS_VERSION}`
  } else if (allGroups(settings).some(isOther)) {
    fault = 'were set up with another "reassign_owned_to"'
  } else return
  throw misconfigured(`The functions in the schema mayfly ${fault}. ${SETUP}`)
}
