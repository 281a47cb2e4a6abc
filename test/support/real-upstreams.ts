import { connect } from 'amqplib'
import type { Issued, Row } from './fault-world.ts'
import { startLdapServer } from './ldap-server.ts'
import { startMosquitto } from './mosquitto-server.ts'
import { openMysqlBench } from './mysql-kind.ts'
import { startRabbit } from './rabbitmq-server.ts'
import { openRedisBench } from './redis-kind.ts'
import { run } from './run-program.ts'

/** A real server that keeps an account for each credential, as its own administrator and its own clients see it. */
export interface RealUpstream {
  /** Of a backend. */
  readonly config: Row
  /** Each list of the server that can name an account, as text. */
  lists(): Promise<Readonly<Record<string, string>>>
  /** Throws when the server refuses the credential. */
  logIn(issued: Pick<Issued, 'id' | 'fields'>): Promise<void>
  close(): Promise<void>
}

type Fields = Readonly<Record<'username' | 'password' | 'url' | 'dn' | 'database', string>>

const fieldsOf = ({ fields }: Pick<Issued, 'fields'>) => fields as unknown as Fields

/** What a program says that succeeds. */
async function said(command: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, stdout, stderr } = await run(command, { PATH: process.env['PATH'] ?? '', ...env })
  if (code !== 0 || stderr !== '') throw new Error(`${command[0]}: ${code} ${stderr}${stdout}`)
  return stdout
}

async function startMysql(): Promise<RealUpstream> {
  const bench = await openMysqlBench()
  const at = ['--no-defaults', '-N', '-h', '127.0.0.1', '-P', String(bench.port)]
  const query = (sql: string) => said(['mariadb', ...at, '-u', 'root', '-e', sql])
  return {
    config: { ...bench.settings },
    lists: async () => ({
      accounts: await query('SELECT User FROM mysql.user'),
      grants: await query('SELECT User FROM mysql.db'),
    }),
    async logIn(issued) {
      const { username, password, database } = fieldsOf(issued)
      const sql = 'SELECT id FROM orders'
      await said(['mariadb', ...at, '-u', username, '-e', sql, database], { MYSQL_PWD: password })
    },
    close: () => bench.close(),
  }
}

async function startRedis(): Promise<RealUpstream> {
  const bench = await openRedisBench()
  return {
    config: { ...bench.settings },
    lists: async () => ({ users: String(await bench.call('ACL', 'LIST')) }),
    async logIn(issued) {
      const reply = await said([
        'redis-cli',
        '--no-auth-warning',
        '-u',
        fieldsOf(issued).url,
        'GET',
        'shop:1',
      ])
      if (reply !== '\n') throw new Error(`redis-cli: ${reply}`)
    },
    close: () => bench.close(),
  }
}

async function startRabbitmq(): Promise<RealUpstream> {
  const server = await startRabbit()
  const list = async (path: string) => JSON.stringify((await server.api('GET', path)).body)
  return {
    config: { ...server.settings },
    lists: async () => ({ users: await list('/users'), permissions: await list('/permissions') }),
    async logIn(issued) {
      const connection = await connect(fieldsOf(issued).url)
      await connection.close()
    },
    close: () => server.stop(),
  }
}

async function startMqtt(): Promise<RealUpstream> {
  const server = await startMosquitto()
  const list = async (...command: string[]) => {
    const { code, stdout, stderr } = await server.control(...command)
    // Its warning that the connection is not encrypted is no fault.
    if (code !== 0 || stdout === '') throw new Error(`mosquitto_ctrl ${command.join(' ')}: ${code} ${stderr}`)
    return stdout
  }
  return {
    config: { ...server.settings },
    // Groups are no accounts: credentials share them, and they go with the end of their span of time.
    lists: async () => {
      const groups = (await list('listGroups')).split('\n').filter((name) => name !== '')
      const members = await Promise.all(groups.map((name) => list('getGroup', name)))
      return { clients: await list('listClients'), members: members.join() }
    },
    async logIn(issued) {
      const topic = `${fieldsOf(issued).url}/jobs`
      await said(['mosquitto_pub', '-V', '5', '-q', '1', '-m', 'hello', '-L', topic])
    },
    close: () => server.stop(),
  }
}

async function startLdap(): Promise<RealUpstream> {
  const server = await startLdapServer()
  const { base, groups } = server.settings
  const login = ['-x', '-H', server.url, '-D', 'cn=admin,dc=example,dc=com', '-w', 'admin']
  const search = (dn: string, attribute: string) =>
    said(['ldapsearch', ...login, '-LLL', '-o', 'ldif-wrap=no', '-b', dn, attribute])
  return {
    config: { ...server.settings },
    lists: async () => {
      const members = groups.map(async (group) => [group, await search(group, 'member')] as const)
      return { entries: await search(base, 'uid'), ...Object.fromEntries(await Promise.all(members)) }
    },
    async logIn(issued) {
      const { dn, password } = fieldsOf(issued)
      await said(['ldapwhoami', '-x', '-H', server.url, '-D', dn, '-w', password])
    },
    close: () => server.stop(),
  }
}

/** By kind. */
export const REAL_UPSTREAMS = {
  mysql: startMysql,
  redis: startRedis,
  rabbitmq: startRabbitmq,
  mqtt: startMqtt,
  ldap: startLdap,
} satisfies Readonly<Record<string, () => Promise<RealUpstream>>>
