import { hostPort } from '../../domain/network/address.ts'
import type { DatabaseParts, OpenedDatabase } from './parts.ts'

interface Where {
  /** Of the port. */
  readonly host: string
  readonly port: number
  readonly directory: string
  readonly socket: string
  /** Of the port in the name of a socket of PostgreSQL. */
  readonly socketPort: number
  /** The child cannot use the socket. */
  readonly isByPort: boolean
}

type Described = Omit<OpenedDatabase, 'close'>

/** What the child is told, in the words of its clients. */
export function describe(
  { held, use }: Pick<DatabaseParts, 'held' | 'use'>,
  placeholder: string,
  where: Where,
): Described {
  const live = held.now()
  const open: ReadonlyMap<string, string> = live.state === 'live' ? live.open : new Map()
  const username = open.get('username') ?? 'mayfly'
  const known = { ...where, username, database: open.get('database') ?? '', password: placeholder }
  const { fields, variables } = FORMS[use.protocol](known)
  const { socket, port: tcpPort } = where
  return { host: fields.host, port: fields.port, socket, tcpPort, password: placeholder, fields, variables }
}

interface Known extends Where {
  readonly username: string
  readonly database: string
  readonly password: string
}

interface Form {
  readonly fields: OpenedDatabase['fields'] & { readonly host: string; readonly port: number }
  readonly variables: OpenedDatabase['variables']
}

function urlOf(scheme: string, { username, password, host, port, database }: Known, rest = ''): string {
  const login = [username, password].map(encodeURIComponent).join(':')
  return `${scheme}://${login}@${hostPort(host, port)}/${encodeURIComponent(database)}${rest}`
}

const FORMS: Readonly<Record<DatabaseParts['use']['protocol'], (known: Known) => Form>> = {
  postgres(known) {
    const { isByPort, username, database, password } = known
    const host = isByPort ? known.host : known.directory
    const port = isByPort ? known.port : known.socketPort
    const url = urlOf('postgresql', known, '?sslmode=disable')
    return {
      fields: { host, port, sslmode: 'disable', username, database, password, url },
      variables: {
        ...{ PGHOST: host, PGPORT: `${port}`, PGUSER: username, PGPASSWORD: password },
        // The proxy is on the same machine, and has no certificate.
        ...{ PGDATABASE: database, PGSSLMODE: 'disable', PGGSSENCMODE: 'disable' },
      },
    }
  },
  mysql(known) {
    // The clients would take the socket for `localhost`: not this one where a file of theirs names another, as Debian's does.
    const { isByPort, socket, host, port, username, database, password } = known
    return {
      fields: { host, port, username, database, password, url: urlOf('mysql', known) },
      variables: {
        ...{ MYSQL_HOST: host, MYSQL_TCP_PORT: `${port}`, MYSQL_PWD: password },
        ...(isByPort ? {} : { MYSQL_UNIX_PORT: socket }),
        ...{ MYSQL_USER: username, MYSQL_DATABASE: database },
      },
    }
  },
  redis(known) {
    const { host, port, username, password } = known
    const database = known.database === '' ? '0' : known.database
    const url = urlOf('redis', { ...known, database })
    return {
      fields: { host, port, username, password, database, url },
      variables: { REDIS_URL: url, REDISCLI_AUTH: password },
    }
  },
}
