import type { Connection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { type MysqlBench, openMysqlBench } from '../../../test/support/mysql-kind.ts'
import { startRewritingProxy } from '../../../test/support/rewriting-proxy.ts'
import type { Backend, Issued } from '../kind.ts'
import { mysql } from './kind.ts'

let bench: MysqlBench
let backend: Backend
beforeAll(async () => {
  bench = await openMysqlBench()
  backend = await bench.open()
})
afterAll(() => bench?.close())

const issue = () => backend.issue(newRequest(['shop']), never())
const revoke = ({ handle = {} }: Issued) => backend.revoke?.(handle, never())
const nameOf = ({ fields }: Issued) => String(fields?.['username'])
const isThere = async (issued: Issued) =>
  (await bench.sql(`SELECT 1 FROM mysql.user WHERE User = '${nameOf(issued)}'`)).length === 1
async function login({ fields }: Issued): Promise<Connection> {
  const client = await bench.login({
    user: String(fields?.['username']),
    password: String(fields?.['password']),
  })
  client.on('error', () => undefined)
  return client
}

describe('the revocation of one account', () => {
  it('leaves the connections to others while sessions do not end, and says that it was refused', async () => {
    const proxy = await startRewritingProxy(bench.port, { 'KILL ': 'DO 1+' })
    const host = { ...createTestHost('shop').host, timeoutMs: 4_000 }
    const powerless = await mysql.open({ ...bench.settings, port: proxy.port }, host)
    const [stubborn, other] = [await issue(), await issue()]
    const client = await login(stubborn)
    // More than there are connections.
    const refused = Array.from({ length: 24 }, () =>
      expect(powerless.revoke?.(stubborn.handle ?? {}, never())).rejects.toMatchObject({ fault: 'denied' }),
    )
    const ended = await Promise.race([
      powerless.revoke?.(other.handle ?? {}, never()).then(() => 'other'),
      ...refused,
    ])
    expect(ended).toBe('other')
    await Promise.all(refused)
    await client.query('SELECT 1')
    await powerless[Symbol.asyncDispose]()
    await proxy.close()
    await revoke(stubborn)
  })

  it('is not held up by other holders who take its lock by turns', async () => {
    const [mine, hostile] = [await issue(), await issue()]
    const clients = await Promise.all(Array.from({ length: 12 }, () => login(hostile)))
    const taking = clients.map((client) =>
      client.query(`SELECT GET_LOCK('${nameOf(mine)}', 600)`).catch(() => undefined),
    )
    await Promise.race(taking)
    await revoke(mine)
    expect(await isThere(mine)).toBe(false)
    // Each has the lock after the one before it: some still wait for it.
    const waiting = await bench.sql("SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'")
    expect(waiting).not.toEqual([])
    await revoke(hostile)
    await Promise.all(taking)
  })
})
