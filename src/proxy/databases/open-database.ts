import type { Server } from 'node:net'
import { describe } from './describe.ts'
import { LOOPBACK, listenOnPort, listenOnSocket, type OnChild } from './listen.ts'
import { serveMysql } from './mysql/serve-mysql.ts'
import type { DatabaseParts, OpenedDatabase, Protocol } from './parts.ts'
import { servePostgres } from './postgres/serve-postgres.ts'
import { serveRedis } from './redis/serve-redis.ts'
import { createVisits } from './visit.ts'

type Kind = DatabaseParts['use']['protocol']

const PROTOCOLS: Readonly<Record<Kind, () => Protocol>> = {
  postgres: servePostgres,
  mysql: serveMysql,
  redis: serveRedis,
}

const FIRST_POSTGRES = 5432

/** The clients of PostgreSQL know a directory and a number. */
const SOCKETS: Readonly<Record<Kind, (number: number) => string>> = {
  postgres: (number) => `.s.PGSQL.${FIRST_POSTGRES + number}`,
  mysql: (number) => `mysql${number}.sock`,
  redis: (number) => `redis${number}.sock`,
}

/** Listens for the child on a socket and on a port, and logs in upstream with the credential of the run. */
export async function openDatabase(parts: DatabaseParts): Promise<OpenedDatabase> {
  const { held, use, directory, host = LOOPBACK } = parts
  const placeholder = held.placeholders.get('password')
  if (placeholder === undefined) throw new Error(`There is no placeholder for the password of ${held.name}.`)
  const visits = createVisits(parts, PROTOCOLS[use.protocol](), placeholder)
  const onChild: OnChild = visits.serve
  const bySocket = await listenOnSocket(directory, SOCKETS[use.protocol], onChild)
  let servers: readonly Server[] = [bySocket.server]
  try {
    const byPort = await listenOnPort(parts, onChild)
    servers = [...servers, byPort.server]
    const where = {
      host,
      directory,
      isByPort: isForOthers(parts),
      socket: bySocket.path,
      socketPort: FIRST_POSTGRES + bySocket.number,
      port: byPort.port,
    }
    return { ...describe(parts, placeholder, where), close: () => close(servers, visits.end) }
  } catch (error) {
    await close(servers, visits.end)
    throw error
  }
}

/** The directory of the socket is open to our own user only. */
function isForOthers({ uids, host = LOOPBACK }: DatabaseParts): boolean {
  const own = process.getuid?.()
  return host !== LOOPBACK || (uids !== undefined && (uids === 'any' || uids.some((uid) => uid !== own)))
}

async function close(servers: readonly Server[], endVisits: () => Promise<void>): Promise<void> {
  const closed = servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))
  await endVisits()
  await Promise.all(closed)
}
