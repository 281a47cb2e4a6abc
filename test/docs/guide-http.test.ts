import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../cli/support.ts'
import { freePort } from '../support/free-port.ts'
import { addOrdersDatabase, type OrdersDatabase } from '../support/postgres-backend.ts'
import { installMayfly, runGuide } from './run-guide.ts'

let world: World
let database: OrdersDatabase
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld({ jobs: true })
  database = await addOrdersDatabase(world)
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  env = { ...world.bareEnv, PATH: `${bin}:${world.bareEnv['PATH']}` }
})
afterAll(async () => {
  await world.close()
  await database.close()
})

test('docs/guides/http.md works as shown', async () => {
  const asAdmin = { MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
  await runGuide('docs/guides/http.md', {
    env: { ...env, ...asAdmin },
    cwd: world.home,
    replace: [['http://127.0.0.1:8620', world.url]],
  })
  const { body } = await world.app.admin('GET', '/v1/admin/audit?backend=orders&action=credential.issued')
  expect(body).toHaveLength(2)
})

test('docs/guides/enrollment-policies.md works as shown', async () => {
  await runGuide('docs/guides/enrollment-policies.md', {
    env,
    cwd: world.home,
    replace: [['8700', String(await freePort())]],
  })
})

test('docs/guides/administrators.md works as shown', async () => {
  await runGuide('docs/guides/administrators.md', {
    env: { ...env, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory },
    cwd: world.home,
  })
})
