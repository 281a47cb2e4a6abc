import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { createBuilder, placeholders } from '../engine/compile.ts'
import type { Engine } from '../engine/engine.ts'
import { asValue } from '../engine/run.ts'
import { StoreError } from '../errors.ts'
import { migrate } from '../schema/migrate.ts'
import { LANES, Lanes } from './commit-queue.ts'
import { createPulse } from './generation.ts'
import { migratable, refusePooler, refuseWeakSettings } from './schema.ts'

const INT8 = 20
/** Of one node: the lanes' own, one for the pulse, and the rest for reading, so that none waits for another. */
const CONNECTIONS = 12
const FEWEST_READERS = 2

export interface PostgresOptions {
  url: string
  /** Connections of this node, 9 or more. */
  connections?: number
  onTrouble?: (what: string, error: unknown) => void
}

const parsers = new pg.TypeOverrides()
parsers.setTypeParser(INT8, Number)
let hotNames = 0

/** Many equal nodes may open the same database. */
export async function openPostgres(options: PostgresOptions): Promise<Engine> {
  const application = `mayfly ${randomBytes(6).toString('hex')}`
  const readers = Math.max(FEWEST_READERS, (options.connections ?? CONNECTIONS) - LANES - 1)
  const [reading, writing, beating] = [readers, LANES, 1].map((size) =>
    createPool(options, application, size),
  )
  if (reading === undefined || writing === undefined || beating === undefined) throw new Error('unreachable')
  const end = () => Promise.all([reading, writing, beating].map((pool) => pool.end()))
  try {
    await refusePooler(writing)
    await refuseWeakSettings(writing)
    await migrate(migratable(writing))
    const lanes = new Lanes(writing, { application, onTrouble: options.onTrouble })
    const pulse = await createPulse(beating, () => void lanes.probe())
    return {
      dialect: 'postgres',
      build: createBuilder('postgres'),
      stats: lanes.stats,
      read: async <R>(query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
        const { sql, parameters } = query.compile()
        return rows<R>(reading, { text: sql, values: parameters.map(asValue) })
      },
      prepare: <R>(sql: string) => {
        const text = placeholders('postgres', sql)
        hotNames += 1
        const name = `hot:${hotNames}`
        return (params) => rows<R>(reading, { name, text, values: [...params] })
      },
      commit: lanes.commit,
      generation: pulse.generation,
      now: pulse.now,
      trouble: () => lanes.trouble() ?? pulse.trouble(),
      close: async () => {
        await lanes.drain()
        pulse.stop()
        await end()
      },
    }
  } catch (error) {
    await end()
    throw error
  }
}

function createPool(options: PostgresOptions, application: string, max: number): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.url,
    max,
    types: parsers,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
    statement_timeout: 10_000,
    lock_timeout: 5_000,
    idle_in_transaction_session_timeout: 10_000,
    // Longer than the server's own: it is for a server that has gone silent.
    query_timeout: 15_000,
    keepAlive: true,
    // Our statements read by index and little; where one looks dear to the planner, compiling it takes longer than it does.
    options: '-c jit=off',
    application_name: application,
  })
  pool.on('error', (error) => options.onTrouble?.('a database connection was lost', error))
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

async function rows<R>(pool: pg.Pool, query: pg.QueryConfig): Promise<R[]> {
  try {
    return (await pool.query(query)).rows as R[]
  } catch (cause) {
    throw new StoreError('the database cannot be read', { cause })
  }
}
