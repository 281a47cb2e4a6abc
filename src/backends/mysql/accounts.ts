import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { BackendError, type Issued, type ListedPage } from '../kind.ts'
import { type Connections, numberOf, type Row, type Session, toBackendError } from './client.ts'
import type { Config } from './config.ts'
import { type Grant, grantStatement } from './grants.ts'

/** Every account that we create for a credential begins so; no other is ever dropped. */
export const PREFIX = 'mf_'

const PAUSE_MS = 25
/** Some five seconds. */
const STEPS = 200
const PAGE = 500

/** CREATE USER failed, and left nothing: the account exists, or we may not create any. */
const NOT_CREATED = [1396, 1227]
const NO_SUCH_SESSION = 1094
/** Of REVOKE ALL. */
const NO_SUCH_ACCOUNT = 1269

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
    if (Number(row['held']) !== 1) throw new BackendError('denied', 'The lock of the account is taken.')
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

/**
 * MariaDB writes statements into its logs as they are, so it gets the hash, as `mysql_native_password` stores it. MySQL masks
 * passwords (8.4 manual, 8.1.2.3 "Passwords and Logging") and has no such method any more.
 */
function identification(password: string, version: string): string {
  if (!/mariadb/i.test(version)) return `IDENTIFIED BY '${password}'`
  const sha1 = (data: string | Buffer) => createHash('sha1').update(data).digest()
  return `IDENTIFIED VIA mysql_native_password USING '*${sha1(sha1(password)).toString('hex').toUpperCase()}'`
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
    return new BackendError('unavailable', refused.message, { detail: refused.detail ?? '', cause: error })
  }
}

/**
 * Drops the account, then ends its sessions, which outlive it. A session that is logging in shows its name before the server
 * looks for the account: it is ended, or finds none. Revocations of one account wait for each other, so that none takes another
 * for an issue. Throws `BackendError`.
 */
export async function dropAccount(revoking: Connections, name: string, signal: AbortSignal): Promise<void> {
  const turn = `${name}.end`
  await revoking.use(signal, async (session) => {
    for (let step = 0; step < STEPS; step += 1) {
      const [[row = {}] = [], , sessions = []] = await session.run(
        `SELECT GET_LOCK('${turn}', 1) AS first, GET_LOCK('${name}', 0) AS held`,
        `DROP USER IF EXISTS ${accountOf(name)}`,
        // With the one that holds the lock: it is an issue that nobody waits for, or nothing of ours.
        `SELECT ID AS id FROM information_schema.PROCESSLIST
          WHERE (USER = '${name}' OR ID = IS_USED_LOCK('${name}')) AND ID <> CONNECTION_ID()
            AND IS_USED_LOCK('${turn}') = CONNECTION_ID()`,
        `DO RELEASE_LOCK('${name}'), RELEASE_LOCK('${turn}')`,
      )
      if (Number(row['first']) === 1 && Number(row['held']) === 1 && sessions.length === 0) {
        if (await isGone(session, name)) return
        throw new BackendError('denied', 'The account is still there, although MySQL has dropped it.')
      }
      for (const { id } of sessions) await endSession(session, Number(id))
      await delay(PAUSE_MS, undefined, { signal })
    }
    throw new BackendError('denied', 'Sessions of the account do not end.')
  })
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
  const items = names.map((name) => ({
    credentialId: `cred_${name.slice(PREFIX.length)}`,
    handle: { username: name },
  }))
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
  const authority = host.includes(':') ? `[${host}]` : host
  const url = `mysql://${username}:${password}@${authority}:${port}/${encodeURIComponent(database)}`
  return { username, password, host, port, database, url }
}
