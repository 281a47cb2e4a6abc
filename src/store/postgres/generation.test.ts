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
  await pool.query("CREATE TABLE meta (key text, value text); INSERT INTO meta VALUES ('generation', '7')")
})
afterAll(async () => {
  await pool.end()
  await database.drop()
  await server.stop()
})

/** The pool, whose answers arrive when they are let through. */
function holdAnswers() {
  const answered = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  let open = true
  const connect = async () => {
    const client = await pool.connect()
    const query = async (text: string) => {
      const result = await client.query(text)
      if (open) return result
      answered.resolve()
      await gate.promise
      return result
    }
    return { query, release: client.release }
  }
  return {
    held: { connect } as unknown as pg.Pool,
    shut: () => {
      open = false
    },
    answered: answered.promise,
    letThrough: gate.resolve,
  }
}

it('gives nobody the answer to a question from before they asked', async () => {
  const { held, shut, answered, letThrough } = holdAnswers()
  const poll = await pollGeneration(held, () => undefined)
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
  }
})
