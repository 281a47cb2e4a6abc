import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Backend } from '../../src/backends/kind.ts'
import { startOwnPostgres } from '../support/postgres.ts'
import { type Bench, login, openBench, request, signal } from '../support/postgres-kind.ts'

let bench: Bench
beforeAll(async () => {
  // One that asks for passwords.
  bench = await openBench(await startOwnPostgres())
})
afterAll(() => bench.close())

const faultOf = (call: Promise<unknown>) =>
  call.then(
    () => 'none',
    ({ fault }) => fault,
  )

test.each(['functions', 'direct'] as const)('replaces its own password, by %s', async (way) => {
  const given = way === 'functions' ? await bench.setUp() : await bench.createRole('CREATEROLE')
  const old = await bench.open(given)
  const { rotation } = old
  if (rotation === undefined) throw new Error('no rotation')
  const next = await rotation.propose(signal())
  expect(Object.keys(next)).toEqual(['password'])
  // Nothing has changed yet.
  await old.check(signal())
  await rotation.adopt(next, signal())
  const fresh = await bench.open({ ...given, ...next })
  await fresh.check(signal())
  const issued = await fresh.issue(request([bench.database.name]), signal())
  await (await login(issued)).end()
  await fresh.revoke?.(issued.handle ?? {}, signal())
  expect(await faultOf((await bench.open(given)).check(signal()))).toBe('denied')
  // Again after a crash, also by the new password.
  await fresh.rotation?.adopt(next, signal())
  await fresh.check(signal())
  const [row] = await bench.sql('SELECT rolpassword FROM pg_authid WHERE rolname = $1', [given.username])
  expect(row?.['rolpassword']).toMatch(/^SCRAM-SHA-256\$4096:/)
})

test('has nothing to replace where it logs in without a password', async () => {
  const { password: _, ...settings } = bench.settings()
  const { postgres } = await import('../../src/backends/postgres/kind.ts')
  const { createTestHost } = await import('../support/host.ts')
  const backend = (await postgres.open(settings, createTestHost('db').host)) as Backend
  expect(backend.rotation).toBeUndefined()
  await backend[Symbol.asyncDispose]()
})
