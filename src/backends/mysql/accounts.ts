import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type BackendError, denied, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { hostPort } from '../../domain/network/address.ts'
import { namedAccounts } from '../account-name.ts'
import type { Issued, ListedPage } from '../kind.ts'
import { type Connections, numberOf, type Row, type Session, toBackendError } from './client.ts'
import type { Config } from './config.ts'
import { type Grant, grantStatement } from './grants.ts'

/** Every account that we create for a credential begins so; no other is ever dropped. */
export const PREFIX = 'mf_'

const PAUSE_MS = 25
const PAGE = 500

/** Without it, a session that waits in a trigger cannot be told from one of the definer. */
export const BLIND =
  'Mayfly cannot see whose some sessions are: set performance_schema=ON in the configuration of the server, restart it, and grant SELECT ON performance_schema.threads.'

/** CREATE USER failed, and left nothing: the account exists, or we may not create any. */
const NOT_CREATED = [1396, 1227]
const NO_SUCH_SESSION = 1094
/** Of REVOKE ALL. */
const NO_SUCH_ACCOUNT = 1269
export const MAY_NOT_SELECT = 1142

/** Their names have 29 of the 32 characters that MySQL permits, none of which needs quoting. */
export const accounts = namedAccounts('username', 'an account')

const accountOf = (name: string) => `'${name}'@'%'`

/**
 * The server finishes what it has received, also for a client that is gone. So the account is created under a lock of its name,
 * which the server releases with the connection: once a revocation has the lock, no issue is under way.
 */
export async function createAccount(
  issuing: Connections,
  name: string,
  grants: readonly Grant[],
  signal: AbortSignal,
): Promise<string> {
  // Of every class that `validate_password` may ask for.
  const password = `${randomBytes(32).toString('base64url')}-aA1`
  await issuing.use(signal, async (session) => {
    const [[row = {}] = []] = await session.run(`SELECT GET_LOCK('${name}', 2) AS held, VERSION() AS version`)
    if (Number(row['held']) !== 1) throw denied('The lock of the account is taken.')
    try {
      await session.run(
        `CREATE USER ${accountOf(name)} ${identification(password, String(row['version']))}`,
        ...grants.map((grant) => grantStatement(grant, accountOf(name))),
        `DO RELEASE_LOCK('${name}')`,
      )
    } catch (error) {
      throw await undo(session, name, error)
    }
  })
  return password
}

function identification(password: string, version: string): string {
  const told = toldPassword(password, version)
  return told === password
    ? `IDENTIFIED BY '${told}'`
    : `IDENTIFIED VIA mysql_native_password USING '${told}'`
}

/**
 * MariaDB writes statements into its logs as they are, so it gets the hash, as `mysql_native_password` stores it. MySQL masks
 * passwords (8.4 manual, 8.1.2.3 "Passwords and Logging") and has no such method any more.
 */
export function toldPassword(password: string, version: string): string {
  if (!/mariadb/i.test(version)) return password
  const sha1 = (data: string | Buffer) => createHash('sha1').update(data).digest()
  return `*${sha1(sha1(password)).toString('hex').toUpperCase()}`
}

/** After an answer that refuses, nothing is left behind; where that is not certain, the fault says so. */
async function undo(session: Session, name: string, error: unknown): Promise<BackendError> {
  const refused = toBackendError(error)
  const number = numberOf(error)
  if (number === undefined || NOT_CREATED.includes(number)) return refused
  try {
    await session.run(`DROP USER IF EXISTS ${accountOf(name)}`)
    return refused
  } catch {
    return unavailable(refused.message, { detail: refused.detail ?? '', cause: error })
  }
}

/** What a session of an account never shows beside the name of another one. */
const NEVER_HIDDEN = "'Sleep', 'Connect', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID'"
const OWN_LOGIN = "LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))"

export type Dropper = (name: string, signal: AbortSignal) => Promise<void>

/**
 * Drops the account, then ends its sessions, which outlive it, until none is left. A session that is logging in shows its name
 * before the server looks for the account: it is ended, or finds none. A session inside a trigger or a routine shows the definer,
 * and its own login in `performance_schema` only. Throws `BackendError`: `denied` when a session does not end.
 */
export function createDropper(revoking: Connections, patienceMs: number): Dropper {
  let mayRead = true

  async function look(session: Session, name: string): Promise<Look> {
    if (mayRead) {
      try {
        return await dropAndLook(session, name, true)
      } catch (error) {
        if (numberOf(error) !== MAY_NOT_SELECT) throw error
        mayRead = false
      }
    }
    return dropAndLook(session, name, false)
  }

  async function endOnce(session: Session, name: string): Promise<ReadonlySet<number> | 'sessions'> {
    const { owners, sessions, unclear } = await look(session, name)
    const ending = new Set([...owners, ...sessions].map(({ id }) => Number(id)))
    for (const id of ending) await endSession(session, id)
    if (sessions.length > 0 || owners.some(({ issues }) => Number(issues) === 1)) return 'sessions'
    if (!(await isGone(session, name))) {
      throw denied('The account is still there, although MySQL has dropped it.')
    }
    return new Set(unclear.map(({ id }) => Number(id)))
  }

  return async (name, signal) => {
    const deadline = performance.now() + patienceMs
    let unclear: ReadonlySet<number> | undefined
    do {
      // A connection for each look: a revocation that has to wait occupies none.
      const seen = await revoking.use(signal, (session) => endOnce(session, name))
      if (seen !== 'sessions') {
        // Between statements a session shows its own login, so only one that has run a statement ever since may be of the account.
        unclear = unclear === undefined ? seen : unclear.intersection(seen)
        if (unclear.size === 0) return
      }
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined)
    } while (performance.now() < deadline)
    mayRead = true
    if (unclear === undefined) throw denied('Sessions of the account do not end.')
    throw misconfigured(BLIND)
  }
}

interface Look {
  /** Of the lock of the account's name: an issue that nobody waits for, or nothing of ours. */
  readonly owners: readonly Row[]
  readonly sessions: readonly Row[]
  readonly unclear: readonly Row[]
}

/** Who has the lock is read first: an issue that has it may still create the account. */
async function dropAndLook(session: Session, name: string, mayRead: boolean): Promise<Look> {
  const login = mayRead ? 't.PROCESSLIST_USER' : 'NULL'
  const threads = mayRead ? 'LEFT JOIN performance_schema.threads t ON t.PROCESSLIST_ID = p.ID' : ''
  const isOurs = `(p.USER = '${name}' OR COALESCE(${login}, '') = '${name}')`
  const isUnclear = `(${mayRead ? 't.PROCESSLIST_ID IS NULL' : 'TRUE'} AND p.USER <> 'system user' AND p.COMMAND NOT IN (${NEVER_HIDDEN}))`
  const [owners = [], , found = []] = await session.run(
    `SELECT ID AS id, USER = ${OWN_LOGIN} AS issues FROM information_schema.PROCESSLIST
      WHERE ID = IS_USED_LOCK('${name}') AND ID <> CONNECTION_ID()`,
    `DROP USER IF EXISTS ${accountOf(name)}`,
    `SELECT p.ID AS id, ${isOurs} AS ours FROM information_schema.PROCESSLIST p ${threads}
      WHERE p.ID <> CONNECTION_ID() AND (${isOurs} OR ${isUnclear})`,
  )
  return {
    owners,
    sessions: found.filter(({ ours }) => Number(ours) === 1),
    unclear: found.filter(({ ours }) => Number(ours) !== 1),
  }
}

/** Of an account that is there, it takes the privileges. The server looks into its cache only; no other statement is as quick. */
async function isGone(session: Session, name: string): Promise<boolean> {
  try {
    await session.run(`REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${accountOf(name)}`)
    return false
  } catch (error) {
    if (numberOf(error) === NO_SUCH_ACCOUNT) return true
    throw error
  }
}

async function endSession(session: Session, id: number): Promise<void> {
  await session.run(`KILL ${id}`).catch((error: unknown) => {
    if (numberOf(error) !== NO_SUCH_SESSION) throw error
  })
}

export async function listAccounts(
  revoking: Connections,
  after: string,
  signal: AbortSignal,
): Promise<ListedPage> {
  const from = `${PREFIX}${/^\w*$/.test(after) ? after : ''}`
  const [rows = []] = await revoking.use(signal, (session) =>
    session.run(
      `SELECT DISTINCT User AS name FROM mysql.user
        WHERE User > '${from}' AND User LIKE 'mf\\_%' ORDER BY User LIMIT ${PAGE}`,
    ),
  )
  const names = rows.map(({ name }: Row) => String(name))
  const last = names.at(-1)
  const items = names.flatMap((name) => accounts.listed(name))
  return rows.length < PAGE || last === undefined ? { items } : { items, next: last.slice(PREFIX.length) }
}

export function fieldsOf(
  settings: Config,
  username: string,
  password: string,
  grants: readonly Grant[],
): NonNullable<Issued['fields']> {
  const host = settings.connect_host ?? settings.host
  const port = settings.connect_port ?? settings.port
  const database = grants[0]?.database ?? settings.databases[0] ?? ''
  const url = `mysql://${username}:${password}@${hostPort(host, port)}/${encodeURIComponent(database)}`
  return { username, password, host, port, database, url }
}
