import { connect as connectAmqp } from 'amqplib'
import pg from 'pg'
import { ROLE, startFakeAws } from './fakes/aws.ts'
import { type Issued, logIn, type Row, startUpstream } from './fault-world.ts'
import { startLdapServer } from './ldap-server.ts'
import { openMysqlBench } from './mysql-kind.ts'
import { startRabbit } from './rabbitmq-server.ts'
import { openRedisBench } from './redis-kind.ts'
import { type IsAnswered, isPostgresReady } from './tripwire-proxy.ts'

/** A real upstream, as the rotation of its root secret sees it. */
export interface RotatingUpstream {
  readonly host: string
  readonly port: number
  /** Whether these bytes are a complete answer; by default any are. */
  readonly isAnswered?: IsAnswered
  /** Of a backend that reaches it through this port, with the first secret. */
  config(port: number): Row
  /** What it accepts of Mayfly's own login now, in a form that differs with each secret. */
  secrets(): Promise<readonly string[]>
  acceptsFirst(): Promise<boolean>
  /** One of `secrets`, as a person does. */
  remove?(secret: string): void
  /** Throws when it cannot log in as an agent would. */
  logIn(issued: Issued): Promise<unknown>
  close(): PromiseLike<unknown>
}

/** The texts that identify each step among all that Mayfly sends. */
export interface Steps {
  /** Makes the new secret, where the upstream does that; then it is valid from there on. */
  readonly make?: readonly string[]
  readonly adopt?: readonly string[]
  /** Makes that last. */
  readonly keep?: readonly string[]
  readonly finish?: readonly string[]
}

export interface RotatingKind {
  readonly fields: readonly string[]
  /** An issue logs in several times. */
  readonly issuesInSteps?: boolean
  readonly steps: Steps
  start(): Promise<RotatingUpstream>
}

const works = (login: Promise<unknown>) =>
  login.then(
    () => true,
    () => false,
  )
const LOCAL = '127.0.0.1'
const FIRST = 'the-first-password'

const postgres: RotatingKind = {
  fields: ['password'],
  // In the rehearsal of issues there are others.
  steps: { adopt: ['ALTER ROLE SESSION_USER'] },
  async start() {
    const upstream = await startUpstream()
    const { host, port } = upstream.server
    const own = { username: 'mayfly_itself', password: FIRST }
    await upstream.sql(`CREATE ROLE ${own.username} SUPERUSER LOGIN PASSWORD '${FIRST}'`)
    return {
      ...{ host, port, logIn, isAnswered: isPostgresReady, close: upstream.close },
      config: (through) => ({ ...upstream.config(through), ...own }),
      secrets: async () =>
        (await upstream.sql('SELECT rolpassword FROM pg_authid WHERE rolname = $1', [own.username])).map(
          (row) => String(row['rolpassword']),
        ),
      async acceptsFirst() {
        const login = { user: own.username, password: FIRST }
        const client = new pg.Client({ host, port, database: upstream.database, ...login })
        client.on('error', () => undefined)
        return works(client.connect().then(() => client.end()))
      },
    }
  },
}

const mysql: RotatingKind = {
  fields: ['password'],
  steps: { adopt: ['SET PASSWORD'] },
  async start() {
    const bench = await openMysqlBench()
    const { username = '', password = '' } = bench.settings
    const login = async (user: string, secret: string) => {
      const session = await bench.login({ user, password: secret })
      await session.query('SELECT 1').finally(() => session.end())
    }
    return {
      ...{ host: LOCAL, port: bench.port, close: bench.close },
      config: (port) => ({ ...bench.settings, port }),
      secrets: async () =>
        (
          await bench.sql(`SELECT authentication_string AS hash FROM mysql.user WHERE User = '${username}'`)
        ).map((row) => String(row['hash'])),
      acceptsFirst: () => works(login(username, password)),
      logIn: ({ fields }) => login(fields?.username ?? '', fields?.password ?? ''),
    }
  },
}

/** As a client of Redis writes the command (RESP), up to the rule. */
const SET_OWN = 'SETUSER\r\n$6\r\nmayfly\r\n$65\r\n'

const redis: RotatingKind = {
  fields: ['password'],
  steps: { adopt: [`${SET_OWN}#`], keep: [`${SET_OWN}#`, 'SAVE'], finish: [`${SET_OWN}!`] },
  async start() {
    const bench = await openRedisBench()
    const { username, password = '' } = bench.settings
    const login = async (user: { username: string; password: string }) => {
      const client = bench.login(user)
      await client.call('GET', 'x').finally(() => client.disconnect())
    }
    return {
      ...{ host: LOCAL, port: bench.port, close: bench.close },
      config: (port) => ({ ...bench.settings, port, persist: true }),
      async secrets() {
        const user = (await bench.call('ACL', 'GETUSER', username)) as unknown[]
        return (user[user.indexOf('passwords') + 1] as unknown[]).map(String)
      },
      async acceptsFirst() {
        const client = bench.login({ username, password })
        return works(client.ping().finally(() => client.disconnect()))
      },
      logIn: ({ fields }) => login({ username: fields?.username ?? '', password: fields?.password ?? '' }),
    }
  },
}

const rabbitmq: RotatingKind = {
  fields: ['password'],
  issuesInSteps: true,
  steps: { adopt: ['PUT /api/users/mayfly '] },
  async start() {
    const server = await startRabbit()
    const { username, password } = server.settings
    return {
      ...{ host: LOCAL, port: Number(new URL(server.url).port), close: server.stop },
      config: (port) => ({ ...server.settings, url: `http://${LOCAL}:${port}` }),
      async secrets() {
        const { body } = await server.api('GET', `/users/${username}`)
        return [String((body as Row)['password_hash'])]
      },
      async acceptsFirst() {
        const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
        return (await fetch(`${server.url}/api/whoami`, { headers: { authorization } })).ok
      },
      logIn: async ({ fields }) => (await connectAmqp(String((fields as Row | undefined)?.['url']))).close(),
    }
  },
}

const ldap: RotatingKind = {
  fields: ['bind_password'],
  // RFC 3062 §2: a request with a new password (tag 2) and without a name (tag 0) is about the one who sends it.
  steps: { adopt: ['1.3.6.1.4.1.4203.1.11.1\x81\x24\x30\x22\x82\x20'] },
  async start() {
    const server = await startLdapServer()
    const { ca: _, bind_dn: dn, bind_password: first, ...rest } = server.settings
    const login = async (name: unknown, password: unknown) => (await server.login(name, password)).unbind()
    return {
      ...{ host: LOCAL, port: Number(new URL(server.url).port), close: server.stop },
      config: (port) => ({
        ...{ ...rest, bind_dn: dn, bind_password: first },
        ...{ url: `ldap://${LOCAL}:${port}`, tls: 'disable' },
      }),
      secrets: () =>
        server.admin(async (client) => {
          const { searchEntries } = await client.search(dn, { scope: 'base', attributes: ['userPassword'] })
          return searchEntries.map((entry) => String(entry['userPassword']))
        }),
      acceptsFirst: () => works(login(dn, first)),
      logIn: ({ fields }) => login((fields as Row | undefined)?.['dn'], fields?.password),
    }
  },
}

/** The only one that is no real server: Ceph has access keys of its own only in versions that Debian does not have yet. */
const aws: RotatingKind = {
  fields: ['access_key_id', 'secret_access_key'],
  steps: { make: ['Action=CreateAccessKey'], finish: ['Action=DeleteAccessKey'] },
  async start() {
    // What it makes is known at once, because the time for a call is short here.
    const fake = await startFakeAws({ lag: 0 })
    const { id, secret } = fake.addKey()
    const key = { access_key_id: id, secret_access_key: secret }
    const ids = () => fake.keys.map((one) => one.id)
    return {
      ...{ host: LOCAL, port: Number(new URL(fake.url).port), close: () => fake[Symbol.asyncDispose]() },
      config: (port) => ({ role_arn: ROLE, local: true, endpoint: `http://${LOCAL}:${port}`, ...key }),
      secrets: async () => ids(),
      acceptsFirst: async () => ids().includes(id),
      remove: (left) => void fake.keys.splice(ids().indexOf(left), 1),
      async logIn({ fields }) {
        const name = String((fields as Row | undefined)?.['session_token'])
        if (!fake.sessions.some((one) => one.name === name)) throw new Error(`no session ${name}`)
      },
    }
  },
}

export const ROTATING: Readonly<
  Record<'postgres' | 'mysql' | 'redis' | 'rabbitmq' | 'ldap' | 'aws', RotatingKind>
> = { postgres, mysql, redis, rabbitmq, ldap, aws }
