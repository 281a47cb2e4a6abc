import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPostgres, type TestDatabase, type TestPostgres } from '../../../test/support/postgres.ts'
import { pollGeneration } from './generation.ts'

let server: TestPostgres
let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  server = await startPostgres()
  database = await server.createDatabase()
  const types = new pg.TypeOverrides()
  types.setTypeParser(20, Number)
  pool = new pg.Pool({ connectionString: database.url, types })
  pool.on('error', () => undefined)
  await pool.query("CREATE TABLE meta (key text, value text); INSERT INTO meta VALUES ('generation', '7')")
})
afterAll(async () => {
  await pool.end()
  await database.drop()
  await server.stop()
})

/** One connection, whose answers arrive when they are let through. */
function holdAnswers(client: pg.PoolClient) {
  const answered = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  let open = true
  const query = async (text: string) => {
    const result = await client.query(text)
    if (open) return result
    answered.resolve()
    await gate.promise
    return result
  }
  const held = { query, release: () => undefined }
  return {
    held: { connect: async () => held } as unknown as pg.Pool,
    shut: () => {
      open = false
    },
    answered: answered.promise,
    letThrough: gate.resolve,
  }
}

it('gives nobody the answer to a question from before they asked', async () => {
  const client = await pool.connect()
  const { held, shut, answered, letThrough } = holdAnswers(client)
  const poll = await pollGeneration(held)
  try {
    shut()
    const early = poll.generation()
    await answered
    await pool.query("UPDATE meta SET value = '8'")
    const late = [poll.generation(), poll.generation()]
    letThrough()
    expect(await early).toBe(7)
    expect(await Promise.all(late)).toEqual([8, 8])
  } finally {
    poll.stop()
    client.release()
  }
})

it('takes everything for changed where the same number comes from another connection', async () => {
  // As the store has it: one connection, which is made again when it is lost.
  const single = new pg.Pool({ ...pool.options, max: 1 })
  single.on('error', () => undefined)
  const poll = await pollGeneration(single)
  try {
    const before = await poll.generation()
    const { rows } = await pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    )
    expect(rows).not.toEqual([])
    // What the lost server had acknowledged as this generation may be something else on the one that took over.
    await expect.poll(() => poll.generation().catch(() => before)).toBeGreaterThan(before)
    expect(poll.changedAt('keys')).toBeGreaterThan(before)
  } finally {
    poll.stop()
    await single.end()
  }
})
