import { hostPort } from '../../domain/network/address.ts'
import type { DatabaseParts, OpenedDatabase } from './parts.ts'

interface Where {
  readonly directory: string
  readonly socket: string
  /** Of the port in the name of a socket of PostgreSQL. */
  readonly socketPort: number
  readonly port: number
}

type Described = Omit<OpenedDatabase, 'close'>

const LOOPBACK = '127.0.0.1'

/** What the child is told, in the words of its clients. */
export function describe(
  { held, use }: Pick<DatabaseParts, 'held' | 'use'>,
  placeholder: string,
  where: Where,
): Described {
  const live = held.now()
  const open: ReadonlyMap<string, string> = live.state === 'live' ? live.open : new Map()
  const login = { username: open.get('username') ?? 'mayfly', database: open.get('database') ?? '' }
  return FORMS[use.protocol]({ ...where, ...login, password: placeholder })
}

interface Known extends Where {
  readonly username: string
  readonly database: string
  readonly password: string
}

function urlOf(scheme: string, { username, password, port, database }: Known, rest = ''): string {
  const login = [username, password].map(encodeURIComponent).join(':')
  return `${scheme}://${login}@${hostPort(LOOPBACK, port)}/${encodeURIComponent(database)}${rest}`
}

const FORMS: Readonly<Record<DatabaseParts['use']['protocol'], (known: Known) => Described>> = {
  postgres(known) {
    const { directory, socketPort, username, database, password } = known
    const url = urlOf('postgresql', known, '?sslmode=disable')
    const fields = {
      host: directory,
      port: socketPort,
      sslmode: 'disable',
      username,
      database,
      password,
      url,
    }
    return {
      ...{ host: directory, port: socketPort, socket: known.socket, tcpPort: known.port, password, fields },
      variables: {
        ...{ PGHOST: directory, PGPORT: `${socketPort}`, PGUSER: username, PGPASSWORD: password },
        // The proxy is on the same machine, and has no certificate.
        ...{ PGDATABASE: database, PGSSLMODE: 'disable', PGGSSENCMODE: 'disable' },
      },
    }
  },
  mysql(known) {
    const { socket, port, username, database, password } = known
    const host = 'localhost'
    const fields = { host, port, username, database, password, url: urlOf('mysql', known) }
    return {
      ...{ host, port, socket, tcpPort: port, password, fields },
      variables: {
        ...{ MYSQL_HOST: host, MYSQL_TCP_PORT: `${port}`, MYSQL_UNIX_PORT: socket, MYSQL_PWD: password },
        ...{ MYSQL_USER: username, MYSQL_DATABASE: database },
      },
    }
  },
  redis(known) {
    const { socket, port, username, password } = known
    const database = known.database === '' ? '0' : known.database
    const url = urlOf('redis', { ...known, database })
    const fields = { host: LOOPBACK, port, username, password, database, url }
    return {
      ...{ host: LOOPBACK, port, socket, tcpPort: port, password, fields },
      variables: { REDIS_URL: url, REDISCLI_AUTH: password },
    }
  },
}
