import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { runCli, startWorld, type World } from './support.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld({ argv: { upstreamTimeout: '1s' } })
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
  const config = { host: '127.0.0.1', port: await freePort(), database: 'app', username: 'm', local: true }
  const body = { type: 'postgres', name: 'orders', config }
  expect((await world.app.admin('POST', '/v1/admin/backends?check=false', body)).status).toBe(200)
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })

test('checks one backend, and ends with 1 if it is not up', async () => {
  expect(await mayfly('backend', 'check', 'demo')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/demo +up/),
  })
  const down = await mayfly('backend', 'check', 'orders')
  expect(down).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/orders +down: refused +.*ECONNREFUSED/),
  })
})

test('checks all of them, and goes on after one that is down', async () => {
  const all = await mayfly('backend', 'check', '--all', '--json')
  expect(all.code).toBe(1)
  const states = JSON.parse(all.stdout).map(
    ({ name, health }: { name: string; health: { state: string } }) => [name, health.state],
  )
  expect(states).toEqual([
    ['demo', 'up'],
    ['orders', 'down'],
  ])
})

test('wants one name or --all, and names a backend that does not exist', async () => {
  expect(await mayfly('backend', 'check')).toMatchObject({ code: 2 })
  expect(await mayfly('backend', 'check', 'demo', '--all')).toMatchObject({ code: 2 })
  expect((await mayfly('backend', 'check', 'nobody')).code).not.toBe(0)
})

test('the list, the backend itself and doctor show the same', async () => {
  await mayfly('backend', 'check', 'orders')
  expect((await mayfly('backend', 'ls')).stdout).toMatch(/orders +postgres .* down: refused/)
  const shown = (await mayfly('backend', 'show', 'orders')).stdout
  expect(shown).toMatch(/health: +down/)
  expect(shown).toMatch(/last failure: +.*: refused/)
  expect((await mayfly('doctor')).stdout).toMatch(/warn +backends +orders is down: refused\./)
})
