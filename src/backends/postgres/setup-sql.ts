import { createHash } from 'node:crypto'
import { type Config, databasesOf } from './config.ts'
import { allGroups, type Group } from './plan.ts'
import { bodyOf, CREDENTIAL, listOf, PROCEDURES } from './procedures.ts'
import { quoteIdentifier, quoteList, quoteLiteral } from './statements.ts'

/** Of the functions; a change of what they do or take raises it. */
export const FUNCTIONS_VERSION = 1

const INSPECT = `BEGIN
  RETURN json_build_object('version', ${FUNCTIONS_VERSION}, 'reassignTo', (SELECT coalesce(json_object_agg(g.name, g.reassign_to), '{}')
    FROM mayfly.groups g WHERE g.login = session_user));
END`

const LIST = `BEGIN
  RETURN ${listOf('p_after', 'p_limit')};
END`

/** Name, parameters, block. */
const FUNCTIONS: readonly [string, Readonly<Record<string, string>>, string][] = [
  ...(['issue', 'revoke', 'disown', 'refresh'] as const).map(
    (name) => [name, PROCEDURES[name].given, blockOf(name)] as [string, Record<string, string>, string],
  ),
  ['inspect', {}, INSPECT],
  ['list', { p_after: 'text', p_limit: 'int' }, LIST],
]

/** The functions declare what is fixed, and find it themselves. */
function blockOf(name: 'issue' | 'revoke' | 'disown' | 'refresh'): string {
  const fixed = Object.entries(PROCEDURES[name].fixed).map(([parameter, type]) => `${parameter} ${type};`)
  const body = bodyOf(name, 'functions')
  return fixed.length === 0 ? body : `DECLARE ${fixed.join(' ')}\nBEGIN\n${body};\nEND`
}

/**
 * A script for psql that a superuser reads and runs once, and again after an upgrade of Mayfly that asks for it. Names are
 * quoted; `psql` does not expand variables in quoted identifiers and literals.
 */
export function setupScript(settings: Config): string {
  const login = quoteIdentifier(settings.username)
  const groups = allGroups(settings)
  return [
    `-- The functions by which Mayfly creates and ends roles, version ${FUNCTIONS_VERSION}. Run it as a superuser, with psql.`,
    `-- Mayfly's login (${oneLine(settings.username)}) needs to exist, with a password and nothing else: CREATE ROLE … LOGIN PASSWORD '…'`,
    '\\set ON_ERROR_STOP on',
    ...groups.map((group) => createGroup(groupOfScript(settings, group))),
    ...connectedBy(settings).flatMap((database) => [
      '',
      connectTo(database),
      'BEGIN;',
      'CREATE SCHEMA IF NOT EXISTS mayfly;',
      'REVOKE ALL ON SCHEMA mayfly FROM PUBLIC;',
      `CREATE TABLE IF NOT EXISTS mayfly.groups (name text PRIMARY KEY, login name NOT NULL, database name NOT NULL,
  schemas text[] NOT NULL, reassign_to name);`,
      ...groups.map((group) => insertGroup(settings, group)),
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
export function uninstallScript(settings: Config): string {
  const groups = allGroups(settings).map((group) => quoteIdentifier(groupOfScript(settings, group)))
  return [
    '-- Takes away what Mayfly has installed here. Revoke its credentials first. Run it as a superuser, with psql.',
    '\\set ON_ERROR_STOP on',
    `DO ${quoteLiteral(`BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname ~ '${CREDENTIAL}') THEN RAISE EXCEPTION 'credentials of Mayfly are alive on this server: revoke them first'; END IF; END`)};`,
    ...connectedBy(settings).flatMap((database) => [
      connectTo(database),
      ...groups.map((group) => `DROP OWNED BY ${group};`),
      'DROP SCHEMA IF EXISTS mayfly CASCADE;',
    ]),
    ...groups.map((group) => `DROP ROLE IF EXISTS ${group};`),
    '',
  ].join('\n')
}

/** The first one is where Mayfly connects and creates roles. */
const connectedBy = (settings: Config) => [...new Set([settings.database, ...databasesOf(settings)])]

/** The role of a group. Fixed by what the script says: two configurations of one login have groups of their own. */
export function groupOfScript({ username, schemas }: Config, { database, access }: Group): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([username, database, schemas]))
    .digest('hex')
  return `mfg_${hash.slice(0, 26)}_${access}`
}

function insertGroup(settings: Config, group: Group): string {
  const { username, schemas, reassign_owned_to: reassignTo } = settings
  const texts = [groupOfScript(settings, group), username, group.database].map(quoteLiteral)
  const reassign = reassignTo === undefined ? 'NULL' : quoteLiteral(reassignTo)
  return (
    `INSERT INTO mayfly.groups VALUES (${texts.join(', ')}, ${quoteList(schemas)}, ${reassign}) ` +
    'ON CONFLICT (name) DO UPDATE SET reassign_to = excluded.reassign_to;'
  )
}

const createGroup = (name: string) =>
  `DO ${quoteLiteral(`BEGIN CREATE ROLE ${quoteIdentifier(name)} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END`)};`

function createFunction([name, parameters, block]: (typeof FUNCTIONS)[number]): string {
  const list = Object.entries(parameters).map(([parameter, type]) => `${parameter} ${type}`)
  return (
    `CREATE OR REPLACE FUNCTION mayfly.${name}(${list.join(', ')}) RETURNS text LANGUAGE plpgsql SECURITY DEFINER ` +
    `SET search_path = pg_catalog, pg_temp AS $mayfly$\n${block}\n$mayfly$;`
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
