import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { makeCertificates } from './certificates.ts'
import { type OwnPostgres, startOwnPostgres } from './postgres.ts'
import { type Account, openProxied, type ProxiedDatabase, type ProxiedOptions } from './proxied-database.ts'

export interface PostgresWorld {
  readonly server: OwnPostgres
  readonly root: pg.Client
  /** PEM of the authority of its certificate, for 127.0.0.1 and localhost. */
  readonly ca: string
  readonly account: Account & { database: string }
  open(use?: Partial<ProxiedOptions['use']>, parts?: Partial<ProxiedOptions>): Promise<ProxiedDatabase>
  /** The first rule of pg_hba.conf from now on; none: as it was. */
  askFor(method?: string): Promise<void>
  close(): Promise<void>
}

/** A PostgreSQL of our own with TLS, and a role as the kind issues it. */
export async function openPostgresWorld(): Promise<PostgresWorld> {
  const server = await startOwnPostgres()
  const root = new pg.Client({ connectionString: server.url })
  await root.connect()
  const certificates = makeCertificates(server.directory)
  // The server refuses a key that is not its own.
  const key = join(server.directory, 'server.key')
  if (userInfo().uid === 0) execFileSync('chown', ['--reference', server.directory, key])
  execFileSync('chmod', ['600', key])
  await root.query(`ALTER SYSTEM SET ssl_cert_file = 'server.pem'`)
  await root.query(`ALTER SYSTEM SET ssl_key_file = 'server.key'`)
  await root.query('ALTER SYSTEM SET ssl = on')
  await root.query('SELECT pg_reload_conf()')
  const account = {
    username: `mf_${randomBytes(6).toString('hex')}`,
    password: randomBytes(32).toString('base64url'),
    database: 'app',
  }
  await root.query(`CREATE ROLE ${account.username} LOGIN PASSWORD '${account.password}'`)
  await root.query(`CREATE DATABASE app OWNER ${account.username}`)
  await root.query('CREATE DATABASE other')
  const rules = join(server.directory, 'pg_hba.conf')
  const before = readFileSync(rules, 'utf8')
  return {
    ...{ server, root, account, ca: certificates.server.ca },
    open: (use = {}, parts = {}) =>
      openProxied({
        account,
        ...parts,
        use: { protocol: 'postgres', host: server.host, port: server.port, ...use },
      }),
    async askFor(method) {
      const rule = method === undefined ? '' : `host all ${account.username} 127.0.0.1/32 ${method}\n`
      await writeFile(rules, rule + before)
      await root.query('SELECT pg_reload_conf()')
    },
    async close() {
      await root.end()
      await server.stop()
    },
  }
}
