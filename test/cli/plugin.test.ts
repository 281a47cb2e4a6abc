import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli, startWorld, type World } from './support.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })

test('ls', async () => {
  expect((await mayfly('plugin', 'ls')).stdout).toMatch(/^NAME +VERSION +FROM\njwt +\S+ +built in$/m)
  expect(JSON.parse((await mayfly('plugin', 'ls', '--json')).stdout)[0]).toMatchObject({ builtin: true })
})

test('reload of one and of all is recorded', async () => {
  expect((await mayfly('plugin', 'reload', 'jwt')).stdout).toBe('Reloaded: jwt.\n')
  const all = JSON.parse((await mayfly('plugin', 'reload', '--json')).stdout)
  expect(all.reloaded).toContain('postgres')
  const { body } = await world.app.admin('GET', '/v1/admin/audit?action=plugin.reloaded')
  expect(body.length).toBeGreaterThanOrEqual(2)
})

test('a plugin that is not loaded', async () => {
  const ended = await mayfly('plugin', 'reload', 'nope')
  expect([ended.code, ended.stderr]).toEqual([
    1,
    'mayfly: No kind with this name is loaded. List them with `mayfly plugin ls`.\n',
  ])
})

test('without the scope, names it', async () => {
  for (const argv of [
    ['plugin', 'ls'],
    ['plugin', 'reload'],
  ])
    expect(await runCli(argv, { env: world.env })).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('admin:plugins:write'),
    })
})
