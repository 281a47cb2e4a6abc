import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { type MysqlBench, openMysqlBench } from '../../../test/support/mysql-kind.ts'
import { mysqlTricks, prepareTricks } from '../../../test/support/mysql-tricks.ts'
import type { Backend } from '../kind.ts'
import { mysql } from './kind.ts'

let bench: MysqlBench
let backend: Backend
beforeAll(async () => {
  bench = await openMysqlBench(['--performance-schema=OFF'])
  await prepareTricks(bench)
  backend = await mysql.open(bench.settings, { ...createTestHost('shop').host, timeoutMs: 2_000 })
})
afterAll(async () => {
  await backend?.[Symbol.asyncDispose]()
  await bench?.close()
})

/** As on most servers of MariaDB: it is off by default, and a session inside a routine shows its definer. */
describe('a server that does not show whose a session is', () => {
  it('fails the check, which names the setting', async () => {
    await expect(backend.check(never())).rejects.toMatchObject({
      fault: 'misconfigured',
      message: expect.stringContaining('performance_schema=ON'),
    })
  })

  it('settles no revocation while a session may be of the account, and each one once it cannot', async () => {
    const [hidden, other] = [
      await backend.issue(newRequest(['shop']), never()),
      await backend.issue(newRequest(['shop']), never()),
    ]
    const hide = mysqlTricks(bench)['a session in a view that runs a function of its definer']
    await using hold = await hide?.(hidden)
    for (const { handle = {} } of [hidden, other])
      await expect(backend.revoke?.(handle, never())).rejects.toMatchObject({ fault: 'misconfigured' })
    expect(await hold?.works()).toBe(true)
    const running = "COMMAND = 'Query' AND ID <> CONNECTION_ID()"
    const [session] = await bench.sql(`SELECT ID AS id FROM information_schema.PROCESSLIST WHERE ${running}`)
    await bench.sql(`KILL ${session?.['id']}`)
    for (const { handle = {} } of [hidden, other]) await backend.revoke?.(handle, never())
    expect(await hold?.works()).toBe(false)
  })

  it('settles revocations while sessions of others are idle, with and without the right to look', async () => {
    const idle = await bench.login({ user: 'root' })
    for (const right of [
      'REVOKE SELECT ON performance_schema.threads FROM',
      'GRANT SELECT ON performance_schema.threads TO',
    ]) {
      await bench.sql(`${right} mayfly@'%'`)
      const { handle = {} } = await backend.issue(newRequest(['shop']), never())
      await backend.revoke?.(handle, never())
    }
    await idle.end()
  })
})
