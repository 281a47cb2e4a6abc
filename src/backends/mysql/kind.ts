import { randomBytes } from 'node:crypto'
import { denied, misconfigured } from '../../domain/backend-error.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Host, Issued } from '../kind.ts'
import { requireTls } from '../server-fields.ts'
import { databaseUse } from '../uses.ts'
import {
  accounts,
  BLIND,
  createAccount,
  createDropper,
  fieldsOf,
  listAccounts,
  MAY_NOT_SELECT,
  toldPassword,
} from './accounts.ts'
import { type Connections, connect, numberOf, type Row } from './client.ts'
import { type Config, config } from './config.ts'
import { canGrant, isValid, planGrants } from './grants.ts'

/** A revocation that has to wait longer answers, and is tried again: it counts as no outage. */
const LONGEST_LOOK_MS = 4_000

/** MariaDB 10.5 and MySQL 8.0 and later: one account per credential, dropped with its sessions. */
export const mysql = defineKind({
  type: 'mysql',
  serviceAccounts: ['mysql'],
  title: 'MySQL and MariaDB',
  config,
  revocation: 'exact',
  scopes: {
    valid: isValid,
    gives: canGrant,
    forms: [
      { form: '<database>:read', gives: 'read the tables of a database' },
      { form: '<database>:write', gives: 'read and change the rows of a database' },
      { form: '<database>.<table>:read', gives: 'read one table' },
      { form: '<database>.<table>:write', gives: 'read and change the rows of one table' },
      { form: '<database>', gives: 'do in a database all that the backend grants' },
      { form: '*', gives: 'do so in all databases of the backend' },
    ],
    help:
      '<database> or <database>.<table> of the databases that the backend grants, followed by :read or :write; * is all of ' +
      'them. Without :read or :write it is all that the backend grants. A read-only backend refuses :write.',
  },
  // No client reads a variable for the user: programs take the last two by convention only.
  environment: {
    MYSQL_HOST: '{host}',
    MYSQL_TCP_PORT: '{port}',
    MYSQL_PWD: '{password}',
    MYSQL_USER: '{username}',
    MYSQL_DATABASE: '{database}',
  },
  uses: (settings, scopes) =>
    databaseUse('mysql', settings, [
      ...new Set(planGrants(settings, scopes).map(({ database }) => database)),
    ]),
  validate: requireTls,
  open: openMysql,
})

async function openMysql(settings: Config, host: Host): Promise<Opened> {
  const issuing = await connect(settings, host)
  const revoking = await connect(settings, host)
  const drop = createDropper(revoking, Math.min(LONGEST_LOOK_MS, host.timeoutMs / 2))
  return {
    check: (signal) => preflight(revoking, settings, signal),
    async issue({ credentialId, scopes }, signal): Promise<Issued> {
      const grants = planGrants(settings, scopes)
      const username = accounts.nameOf(credentialId)
      const password = await createAccount(issuing, username, grants, signal)
      const fields = fieldsOf(settings, username, password, grants)
      return { fields, handle: { username }, facts: { username } }
    },
    revoke: async (handle, signal) => drop(accounts.nameIn(handle), signal),
    recover: accounts.recover,
    list: (after, signal) => listAccounts(revoking, after ?? '', signal),
    rotation: {
      propose: async () => ({ password: `${randomBytes(32).toString('base64url')}-aA1` }),
      adopt: ({ password = '' }, signal) => setOwnPassword(revoking, password, signal),
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([issuing, revoking].map((connections) => connections[Symbol.asyncDispose]()))
    },
  }
}

/** Of the login itself, which needs no privilege. */
async function setOwnPassword(
  connections: Connections,
  password: string,
  signal: AbortSignal,
): Promise<void> {
  if (!/^[\w-]{20,}$/.test(password)) {
    throw misconfigured('The new password is not one that Mayfly made.')
  }
  await connections.use(signal, async (session) => {
    const [[row = {}] = []] = await session.run('SELECT VERSION() AS version')
    await session.run(`SET PASSWORD = '${toldPassword(password, String(row['version']))}'`)
  })
}

const LOGIN = `CONCAT('''', LEFT(CURRENT_USER(), LENGTH(CURRENT_USER()) - LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1),
  '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')`
const READ = ['SELECT', 'SHOW VIEW']
const WRITE = [...READ, 'INSERT', 'UPDATE', 'DELETE']
const SUPERUSER =
  'Mayfly logs in with the privilege SUPER. Use an account that has only the privileges which the page of this kind lists.'

/** Reads what the login may do. Throws `BackendError` that names everything that is missing. */
async function preflight(
  connections: Connections,
  settings: Config,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { databases } = settings
  const found = await connections.use(signal, (session) =>
    session.run(
      'SELECT @@global.read_only AS only_reads, @@performance_schema AS sees_logins',
      `SELECT PRIVILEGE_TYPE AS name, IS_GRANTABLE AS grantable FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = ${LOGIN}`,
      ...databases.flatMap((database) => [
        `SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ${quote(database)}`,
        `SELECT PRIVILEGE_TYPE AS name FROM information_schema.SCHEMA_PRIVILEGES
          WHERE GRANTEE = ${LOGIN} AND IS_GRANTABLE = 'YES' AND ${quote(database)} LIKE TABLE_SCHEMA`,
      ]),
    ),
  )
  const [[state = {}] = [], everywhere = [], ...each] = found
  if (Number(state['only_reads']) === 1) {
    throw misconfigured('The server only reads: it is a replica, or was made read-only.')
  }
  if (Number(state['sees_logins']) !== 1) throw misconfigured(BLIND)
  const held = namesOf(everywhere)
  const lacks = (name: string) => !held.has(name)
  const missing = ['CREATE USER', 'PROCESS'].filter(lacks)
  if (['CONNECTION ADMIN', 'CONNECTION_ADMIN', 'SUPER'].every(lacks)) missing.push('CONNECTION ADMIN')
  const passedOn = namesOf(everywhere.filter((row) => row['grantable'] === 'YES'))
  const needed = settings.grant === 'read-write' ? WRITE : READ
  for (const [index, database] of databases.entries()) {
    const here = namesOf(each[index * 2 + 1] ?? [])
    const absent = needed.filter((name) => !passedOn.has(name) && !here.has(name))
    if (absent.length > 0) missing.push(`${absent.join(', ')} ON \`${database}\`.* WITH GRANT OPTION`)
    else if (each[index * 2]?.length === 0) {
      throw misconfigured(`The database "${database}" does not exist.`)
    }
  }
  for (const one of READ_BY_ITSELF) {
    if (!(await mayRead(connections, one, signal))) missing.push(`SELECT${one.join(' ON ')}`)
  }
  if (missing.length > 0) {
    throw denied(`The account that Mayfly uses lacks ${missing.join('; ')}.`)
  }
  return held.has('SUPER') ? [SUPERUSER] : []
}

/** Columns and table, as in a GRANT: to list accounts, and to see whose a session is. */
const READ_BY_ITSELF = [
  [' (User)', 'mysql.user'],
  ['', 'performance_schema.threads'],
] as const

async function mayRead(
  connections: Connections,
  [columns, table]: (typeof READ_BY_ITSELF)[number],
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await connections.use(signal, (session) => session.run(`SELECT${columns || ' 1'} FROM ${table} LIMIT 0`))
    return true
  } catch (error) {
    if (numberOf(error) === MAY_NOT_SELECT) return false
    throw error
  }
}

const namesOf = (rows: readonly Row[]) => new Set(rows.map(({ name }) => String(name)))
/** Of a database's name, in which the configuration permits no backslash. */
const quote = (name: string) => `'${name.replaceAll("'", "''")}'`
