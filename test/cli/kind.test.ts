import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kinds } from '../../src/backends/index.ts'
import { runCli, startWorld, type World } from './support.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })

test('plugin ls', async () => {
  expect((await mayfly('plugin', 'ls')).stdout).toMatch(/^KIND +VERSION +FROM\n[\s\S]*^jwt +\S+ +built in$/m)
  expect(JSON.parse((await mayfly('plugin', 'ls', '--json')).stdout)[0]).toMatchObject({ builtin: true })
})

test('kind ls and kind show', async () => {
  const [list, show] = [
    ['kind', 'ls'],
    ['kind', 'show'],
  ] as const
  expect((await mayfly(...list)).stdout).toMatch(
    /^KIND +TITLE +REVOCATION\n[\s\S]*^postgres +PostgreSQL +at once$/m,
  )
  expect(JSON.parse((await mayfly(...list, '--json')).stdout)).toHaveLength(kinds.length)
  const shape = await mayfly(...show, 'postgres')
  expect(shape.stdout).toMatch(/^--password-file <path> /m)
  expect(shape.stdout).toMatch(/^--host <text> +required /m)
  expect(shape.stdout).not.toMatch(/^--password </m)
  expect(shape.stdout).toMatch(/^<database>:read +read the tables of a database$/m)
  expect(shape.stdout).toMatch(/^PGPASSWORD +\{password\}$/m)
  expect((await mayfly(...show, 'postgers')).stderr).toMatch(/did you mean "postgres"/)
})

describe('plugin reload', () => {
  test('of one and of all is recorded', async () => {
    const recorded = async () =>
      (await world.app.admin('GET', '/v1/admin/audit?action=plugin.reloaded')).body.length
    const before = await recorded()
    expect((await mayfly('plugin', 'reload', 'jwt')).stdout).toBe('Reloaded: jwt.\n')
    const all = JSON.parse((await mayfly('plugin', 'reload', '--json')).stdout)
    expect(all.reloaded).toContain('postgres')
    expect(await recorded()).toBeGreaterThanOrEqual(before + 2)
  })
})

test('a kind that is not loaded', async () => {
  const ended = await mayfly('plugin', 'reload', 'nope')
  expect([ended.code, ended.stderr]).toEqual([
    1,
    'mayfly: No kind with this name is loaded. List them with `mayfly kind ls`.\n',
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
