import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startOwnPostgres } from '../../../test/support/postgres.ts'
import { type Bench, login, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import type { Issued } from '../kind.ts'

let own: Bench
beforeAll(async () => {
  const server = await startOwnPostgres()
  own = await openBench(server)
  await own.sql('ALTER SYSTEM SET max_prepared_transactions = 8')
  await server.restart()
}, 60_000)
afterAll(() => own?.close())

const roles = (issued: Issued) =>
  own.sql('SELECT FROM pg_roles WHERE starts_with(rolname, $1)', [issued.handle?.['username']])

describe('transactions that a credential leaves prepared or open', () => {
  it.each(['superuser', 'createrole'])(
    'rolls back what was prepared, in every database (%s)',
    async (who) => {
      const [other, mayfly] = [await own.createDatabase(), await own.createRole('CREATEROLE')]
      const backend = await own.open(who === 'superuser' ? {} : mayfly)
      const issued = await backend.issue(request([]), signal())
      for (const [database, text] of [
        [own.database.name, "ALTER ROLE CURRENT_USER PASSWORD 'another'"],
        [other.name, 'SELECT lo_creat(-1)'],
      ] as const) {
        const client = await login(issued, database)
        await client.query(`BEGIN; ${text}; PREPARE TRANSACTION 'it''s \\ ${database}'`)
        await client.end()
      }
      expect(await own.sql('SELECT gid FROM pg_prepared_xacts')).toHaveLength(2)
      await backend.revoke?.(issued.handle ?? {}, signal())
      expect(await own.sql('SELECT gid FROM pg_prepared_xacts')).toEqual([])
      expect(await roles(issued)).toEqual([])
    },
  )

  it('is not held up, nor is issuing, by another credential that has prepared a transaction with that lock', async () => {
    const mayfly = await own.createRole('CREATEROLE')
    const backend = await own.open(mayfly)
    const [hostile, mine] = [
      await backend.issue(request([]), signal()),
      await backend.issue(request([]), signal()),
    ]
    const holder = await login(hostile)
    const held = "BEGIN; SELECT pg_advisory_xact_lock(120265298308217); PREPARE TRANSACTION 'turn'"
    await holder.query(held)
    const fresh = await backend.issue(request([]), AbortSignal.timeout(4_000))
    await holder.query(held)
    await backend.revoke?.(mine.handle ?? {}, AbortSignal.timeout(4_000))
    await holder.query(held)
    const both = await Promise.all([1, 2].map(() => backend.issue(request([]), AbortSignal.timeout(4_000))))
    await holder.end()
    for (const issued of [hostile, fresh, ...both]) await backend.revoke?.(issued.handle ?? {}, signal())
    expect(await roles(hostile)).toEqual([])
  })

  it.each(['open', 'prepared'])(
    'is not held up by a GRANT of another credential to it, left %s',
    async (how) => {
      const backend = await own.open(await own.createRole('CREATEROLE'))
      const [mine, other] = [
        await backend.issue(request([]), signal()),
        await backend.issue(request([]), signal()),
      ]
      const granter = await login(other)
      await granter.query(
        `BEGIN; SELECT lo_create(4711); GRANT SELECT ON LARGE OBJECT 4711 TO ${mine.handle?.['username']}`,
      )
      if (how === 'prepared') await granter.query("PREPARE TRANSACTION 'grant'")
      await backend.revoke?.(mine.handle ?? {}, signal())
      expect(await roles(mine)).toEqual([])
      await granter.end()
      await backend.revoke?.(other.handle ?? {}, signal())
    },
  )
})
