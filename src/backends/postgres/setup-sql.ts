import { createHash } from 'node:crypto'
import type { Config } from './config.ts'
import { bodyOf, CREDENTIAL } from './procedures.ts'
import { quoteIdentifier, quoteList, quoteLiteral } from './statements.ts'

/** Of the functions; a change of what they do or take raises it. */
export const FUNCTIONS_VERSION = 1

export interface Setup {
  /** The role that Mayfly logs in as. */
  readonly login: string
  /** The first one is where Mayfly connects and creates roles. */
  readonly databases: readonly string[]
  readonly granted: readonly string[]
  readonly schemas: readonly string[]
  readonly accesses: readonly ('read' | 'write')[]
  readonly reassignTo: string | undefined
}

/** Own statements run with rights of the login's own: for them there is nothing to set up. */
export function setupOf(settings: Config): Setup {
  const granted = settings.databases ?? [settings.database]
  return {
    login: settings.username,
    databases: [...new Set([settings.database, ...granted])],
    granted,
    schemas: settings.schemas,
    accesses: settings.grant === 'read-write' ? ['read', 'write'] : ['read'],
    reassignTo: settings.reassign_owned_to,
  }
}

/** What a role may be called: the functions create no other, and give no other password. */
const VERIFIER = '^SCRAM-SHA-256[$][0-9]{1,7}:[A-Za-z0-9+/]+=*[$][A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=$'

const ISSUE = `DECLARE members text;
BEGIN
  IF p_role !~ '${CREDENTIAL}' OR p_verifier !~ '${VERIFIER}' OR p_until IS NULL THEN
    RAISE EXCEPTION 'not a role of a credential, or not a SCRAM verifier' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF EXISTS (SELECT FROM unnest(p_groups) g WHERE NOT EXISTS (SELECT FROM mayfly.groups x WHERE x.name = g AND x.login = session_user)) THEN
    RAISE EXCEPTION 'not a group of this login' USING ERRCODE = 'insufficient_privilege';
  END IF;
  EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD %L VALID UNTIL %L', p_role, p_verifier, p_until);
  SELECT string_agg(quote_ident(g), ', ') INTO members FROM unnest(p_groups) g;
  IF members IS NOT NULL THEN
    EXECUTE format('GRANT %s TO %I%s', members, p_role,
      CASE WHEN current_setting('server_version_num')::int >= 160000 THEN ' WITH INHERIT TRUE, SET FALSE, ADMIN FALSE' ELSE '' END);
  END IF;
  RETURN '{"state":"issued"}';
END`

const INSPECT = `BEGIN
  RETURN json_build_object('version', ${FUNCTIONS_VERSION}, 'groups', (SELECT coalesce(json_agg(json_build_object('name', g.name,
      'database', g.database, 'access', g.access, 'schemas', g.schemas, 'reassign_to', g.reassign_to)), '[]') FROM mayfly.groups g
    WHERE g.login = session_user));
END`

const LIST = `BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('name', r.rolname, 'until', r.rolvaliduntil) ORDER BY r.rolname), '[]') FROM (
    SELECT r.rolname, r.rolvaliduntil FROM pg_roles r WHERE r.rolname ~ '${CREDENTIAL}' AND r.rolname > p_after ORDER BY r.rolname LIMIT least(p_limit, 1000)) r);
END`

/** Name, parameters, block, and the parameters of the block that the functions find by themselves. */
const FUNCTIONS: readonly [string, Readonly<Record<string, string>>, string, string][] = [
  ['issue', { p_role: 'text', p_verifier: 'text', p_until: 'timestamptz', p_groups: 'text[]' }, ISSUE, ''],
  ['revoke', { p_role: 'text' }, bodyOf('revoke', 'functions'), ''],
  ['disown', { p_role: 'text' }, bodyOf('disown', 'functions'), 'p_reassign text;'],
  [
    'refresh',
    { p_group: 'text' },
    bodyOf('refresh', 'functions'),
    'p_access text; p_schemas text[]; p_reassign text;',
  ],
  ['inspect', {}, INSPECT, ''],
  ['list', { p_after: 'text', p_limit: 'int' }, LIST, ''],
]

/**
 * A script for psql that a superuser reads and runs once, and again after an upgrade of Mayfly that asks for it. Names are
 * quoted; `psql` does not expand variables in quoted identifiers and literals.
 */
export function setupScript(setup: Setup): string {
  const login = quoteIdentifier(setup.login)
  const groups = groupsOf(setup)
  return [
    `-- The functions by which Mayfly creates and ends roles, version ${FUNCTIONS_VERSION}. Run it as a superuser, with psql.`,
    `-- Mayfly's login (${oneLine(setup.login)}) needs to exist, with a password and nothing else: CREATE ROLE … LOGIN PASSWORD '…'`,
    '\\set ON_ERROR_STOP on',
    ...groups.map(({ name }) => createGroup(name)),
    ...setup.databases.flatMap((database) => [
      '',
      connectTo(database),
      'BEGIN;',
      'CREATE SCHEMA IF NOT EXISTS mayfly;',
      'REVOKE ALL ON SCHEMA mayfly FROM PUBLIC;',
      `CREATE TABLE IF NOT EXISTS mayfly.groups (name text PRIMARY KEY, login name NOT NULL, database name NOT NULL,
  access text NOT NULL, schemas text[] NOT NULL, reassign_to name);`,
      ...groups.map(
        (group) =>
          `INSERT INTO mayfly.groups VALUES (${quoteLiteral(group.name)}, ${quoteLiteral(setup.login)}, ${quoteLiteral(group.database)}, ${quoteLiteral(group.access)}, ${quoteList(setup.schemas)}, ${setup.reassignTo === undefined ? 'NULL' : quoteLiteral(setup.reassignTo)}) ON CONFLICT (name) DO UPDATE SET reassign_to = excluded.reassign_to;`,
      ),
      ...FUNCTIONS.map(createFunction),
      'REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mayfly FROM PUBLIC;',
      `GRANT USAGE ON SCHEMA mayfly TO ${login};`,
      `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA mayfly TO ${login};`,
      'COMMIT;',
    ]),
    '',
  ].join('\n')
}

/** Takes away what `setupScript` made. Refuses while credentials live that only the functions can end. */
export function uninstallScript(setup: Setup): string {
  const groups = groupsOf(setup).map(({ name }) => quoteIdentifier(name))
  return [
    '-- Takes away what Mayfly has installed here. Revoke its credentials first. Run it as a superuser, with psql.',
    '\\set ON_ERROR_STOP on',
    `DO ${quoteLiteral(`BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname ~ '${CREDENTIAL}') THEN RAISE EXCEPTION 'credentials of Mayfly are alive on this server: revoke them first'; END IF; END`)};`,
    ...setup.databases.flatMap((database) => [
      connectTo(database),
      ...groups.map((group) => `DROP OWNED BY ${group};`),
      'DROP SCHEMA IF EXISTS mayfly CASCADE;',
    ]),
    ...groups.map((group) => `DROP ROLE IF EXISTS ${group};`),
    '',
  ].join('\n')
}

/** Fixed by what the script says: two configurations of one login have groups of their own. */
function groupsOf({ login, granted, schemas, accesses }: Setup) {
  return granted.flatMap((database) =>
    accesses.map((access) => {
      const hash = createHash('sha256')
        .update(JSON.stringify([login, database, schemas]))
        .digest('hex')
      return { name: `mfg_${hash.slice(0, 26)}_${access}`, database, access }
    }),
  )
}

const createGroup = (name: string) =>
  `DO ${quoteLiteral(`BEGIN CREATE ROLE ${quoteIdentifier(name)} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END`)};`

function createFunction([name, parameters, block, found]: (typeof FUNCTIONS)[number]): string {
  const list = Object.entries(parameters).map(([parameter, type]) => `${parameter} ${type}`)
  return (
    `CREATE OR REPLACE FUNCTION mayfly.${name}(${list.join(', ')}) RETURNS text LANGUAGE plpgsql SECURITY DEFINER ` +
    `SET search_path = pg_catalog, pg_temp AS $mayfly$\n${found === '' ? '' : `DECLARE ${found}\nBEGIN\n`}${block}${found === '' ? '' : ';\nEND'}\n$mayfly$;`
  )
}

/** A name in a psql meta-command is quoted as an identifier; it takes no line break. */
function connectTo(database: string): string {
  return `\\connect ${quoteIdentifier(oneLine(database))}`
}

function oneLine(text: string): string {
  if (/[\r\n]/.test(text)) throw new RangeError('A name with a line break cannot be written into a script.')
  return text
}
