import { randomBytes } from 'node:crypto'
import { type LookupFunction, Socket } from 'node:net'
import type { Compilable } from 'kysely'
import pg from 'pg'
import { createBuilder, placeholders } from '../engine/compile.ts'
import type { Engine } from '../engine/engine.ts'
import { compiled } from '../engine/run.ts'
import { StoreError } from '../errors.ts'
import { migrate } from '../schema/migrate.ts'
import { COMMIT_CONNECTIONS, CommitQueue } from './commit-queue.ts'
import { isPlanStale, toStoreError } from './errors.ts'
import { onceReachable, type Waiting } from './first-contact.ts'
import { pollGeneration } from './generation.ts'
import { createHorizon, MOMENT } from './horizon.ts'
import { migratable } from './migrate.ts'
import { requireUsableServer } from './requirements.ts'

const INT8 = 20
/** Connections of one node: one polls the generation, the commit queue has its own, and the rest read. */
const CONNECTIONS = 12
const MIN_READERS = 2

export interface PostgresOptions {
  url: string
  /** Connections of this node, 9 or more. */
  connections?: number
  /** Instead of the system's, which takes a thread for as long as a name server is silent. */
  lookup?: LookupFunction
  onTrouble?: (what: string, error: unknown) => void
  /** Absent: a database that is not there yet is an error. */
  waiting?: Waiting | undefined
}

/** Any number of equal nodes may open the same database. */
export async function openPostgres(options: PostgresOptions): Promise<Engine> {
  return onceReachable(() => openNow(options), options.waiting)
}

async function openNow(options: PostgresOptions): Promise<Engine> {
  const application = `mayfly ${randomBytes(6).toString('hex')}`
  const readers = Math.max(MIN_READERS, (options.connections ?? CONNECTIONS) - COMMIT_CONNECTIONS - 1)
  const readPool = createPool(options, application, readers)
  const writePool = createPool(options, application, COMMIT_CONNECTIONS)
  const pollPool = createPool(options, application, 1)
  const endPools = () => Promise.all([readPool, writePool, pollPool].map((pool) => pool.end()))
  try {
    await requireUsableServer(writePool)
    await migrate(migratable(writePool))
    const queue = new CommitQueue(writePool, {
      application,
      now: () => poll.now(),
      onTrouble: options.onTrouble,
    })
    const poll = await pollGeneration(pollPool, {
      onAnswer: () => void queue.probe(),
      onClockStep: (ms) => options.onTrouble?.(clockStep(ms), new Error(`by ${Math.round(ms / 1_000)} s`)),
      onTrouble: options.onTrouble,
    })
    const readRows = async <R>(query: Compilable<R>) => {
      const { sql: text, params: values } = compiled(query)
      return read<R>(readPool, { text, values })
    }
    let prepared = 0
    return {
      dialect: 'postgres',
      hasOtherNodes: true,
      endSlice: 2_500,
      expireSlice: 250,
      build: createBuilder('postgres'),
      stats: queue.stats,
      read: readRows,
      // Rows arrive, and are decoded, packet by packet.
      scan: async function* (query) {
        yield await readRows(query)
      },
      prepare: <R>(sql: string) => {
        const text = placeholders('postgres', sql)
        const newName = () => {
          prepared += 1
          return `hot:${prepared}`
        }
        let name = newName()
        return async (params) => {
          const used = name
          try {
            return await read<R>(readPool, { name, text, values: [...params] })
          } catch (error) {
            if (!isPlanStale(error)) throw error
            // A node of the next version has added a column. Under a new name, each connection prepares the statement once more.
            if (name === used) name = newName()
            return read<R>(readPool, { name, text, values: [...params] })
          }
        }
      },
      commit: queue.commit,
      generation: poll.generation,
      changedAt: poll.changedAt,
      now: poll.now,
      horizon: createHorizon(async () => {
        const [row] = await read<{ xmin: string; xmax: string; at: number }>(readPool, { text: MOMENT })
        if (row === undefined) throw new StoreError('the database does not say which transactions have ended')
        return { xmin: BigInt(row.xmin), xmax: BigInt(row.xmax), at: row.at }
      }),
      trouble: () => queue.trouble() ?? poll.trouble(),
      close: async () => {
        await queue.drain()
        poll.stop()
        await endPools()
      },
    }
  } catch (error) {
    await endPools()
    throw error
  }
}

/** Logs the effect of a step on times that were stored before it. */
function clockStep(ms: number): string {
  return ms < 0
    ? "the database's clock was set back, and Mayfly follows it. What was issued before ends later by the difference"
    : "the database's clock was set forward, and Mayfly follows it. What was issued before ends earlier by the difference"
}

function createPool(options: PostgresOptions, application: string, max: number): pg.Pool {
  const types = new pg.TypeOverrides()
  types.setTypeParser(INT8, Number)
  const pool = new pg.Pool({
    connectionString: options.url,
    max,
    types,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
    statement_timeout: 10_000,
    lock_timeout: 5_000,
    idle_in_transaction_session_timeout: 10_000,
    // For a server that has gone silent, so longer than its own time-out.
    query_timeout: 15_000,
    keepAlive: true,
    // Our statements read few rows by index. When the planner overestimates one, JIT takes longer than running it.
    options: '-c jit=off',
    application_name: application,
    ...(options.lookup === undefined ? {} : { stream: streamsBy(options.lookup) }),
  })
  pool.on('error', (error) => options.onTrouble?.('a database connection was lost', error))
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** Sockets that connect by this look-up, for the driver, which has no option for it. */
function streamsBy(lookup: LookupFunction): () => Socket {
  return () => {
    const socket = new Socket()
    const connectTo = socket.connect.bind(socket)
    return Object.assign(socket, {
      // A socket file has no host.
      connect: (port: number | string, host?: string) =>
        typeof port === 'number' && host !== undefined
          ? connectTo({ port, host, lookup })
          : connectTo(String(port)),
    })
  }
}

async function read<R>(pool: pg.Pool, query: pg.QueryConfig): Promise<R[]> {
  try {
    return (await pool.query(query)).rows as R[]
  } catch (error) {
    throw toStoreError(error, 'read')
  }
}
