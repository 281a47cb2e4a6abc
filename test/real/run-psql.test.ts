import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner, recordsOf } from '../cli/run-support.ts'
import { runCli, spawnCli, startWorld, type World } from '../cli/support.ts'
import { addOrdersDatabase, type OrdersDatabase } from '../support/postgres-backend.ts'

let world: World
let database: OrdersDatabase
beforeAll(async () => {
  world = await startWorld({ jobs: true })
  database = await addOrdersDatabase(world)
})
afterAll(async () => {
  await world.close()
  await database.close()
})

const ENV = `credentials:
  orders:
    backend: orders
    ttl: 5m
    env: { PGHOST: host, PGPORT: port, PGDATABASE: database, PGUSER: username, PGPASSWORD: password }
`
const FILES = `credentials:
  orders:
    backend: orders
    files:
      PGPASSFILE: "{{host}}:{{port}}:{{database}}:{{username}}:{{password}}"
      PGSERVICEFILE: "[orders]\\nhost={{host}}\\nport={{port}}\\ndbname={{database}}\\nuser={{username}}\\n"
`

async function project(name: string, yaml: string): Promise<string> {
  const cwd = join(world.home, name)
  await mkdir(cwd, { recursive: true })
  await writeFile(join(cwd, '.mayfly.yaml'), yaml)
  expect(await runCli(['allow', '--yes'], { cwd, env: world.bareEnv })).toMatchObject({ code: 0 })
  return cwd
}

test.each([
  ['in variables', ENV, ['psql', '-Atc', 'select current_user, name from orders']],
  ['in files', FILES, ['psql', 'service=orders', '-Atc', 'select current_user, name from orders']],
])('psql with what it needs %s; then the role is gone', async (_, yaml, command) => {
  const { agent, env } = await newRunner(world, ['orders'])
  const cwd = await project('psql', yaml)
  const end = await spawnCli(['run', '--', ...command], { env, cwd }).ended
  expect(end).toMatchObject({ code: 0, stderr: '' })
  const [role, name] = end.stdout.trim().split('|')
  expect([role, name]).toEqual([expect.stringMatching(/^mf_/), 'plums'])
  expect(await database.hasRole(role ?? '')).toBe(false)
  expect(await recordsOf(world, agent)).toMatchObject([{ backend: 'orders', status: 'revoked' }])
})

test('psql with nothing mapped; what is mapped by name wins', async () => {
  const { agent, env } = await newRunner(world, ['orders'])
  const query = ['psql', '-Atc', 'select current_user, name from orders']
  const end = await spawnCli(['run', '--backend', 'orders', '--', ...query], { env }).ended
  expect(end).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^mf_\w+\|plums\n$/) })
  const shadowed = ['--backend', 'orders', '--env', 'PGDATABASE=orders:username', '--', ...query]
  const other = await spawnCli(['run', ...shadowed], { env }).ended
  expect(other).toMatchObject({ code: 2, stderr: expect.stringMatching(/database "mf_\w+" does not exist/) })
  const cwd = await project('unmapped', 'credentials: { orders: { ttl: 5m } }\n')
  expect(await spawnCli(['run', '--', ...query], { env, cwd }).ended).toMatchObject({ code: 0, stderr: '' })
  expect(await recordsOf(world, agent)).toMatchObject(Array(3).fill({ status: 'revoked' }))
})

test('get -o env sets what psql reads, and with --prefix only what was asked for', async () => {
  const { env } = await newRunner(world, ['orders'])
  const shown = await runCli(['get', 'orders', '-o', 'env'], { env })
  expect(shown).toMatchObject({ code: 0, stderr: '' })
  const script = `${shown.stdout}\npsql -Atc 'select name from orders'`
  const { stdout } = await promisify(execFile)('/bin/sh', ['-ec', script], {
    env: { PATH: world.bareEnv['PATH'] },
  })
  expect(stdout).toBe('plums\n')
  const dotenv = await runCli(['get', 'orders', '-o', 'dotenv'], { env })
  expect(dotenv.stdout).toMatch(/^PGPASSWORD='/m)
  const prefixed = await runCli(['get', 'orders', '-o', 'env', '--prefix', 'DB'], { env })
  expect(prefixed.stdout).toMatch(/^(export DB_[A-Z]+='[^']+'\n)+$/)
})

test('--redact hides the password and the URL and leaves the rest readable', async () => {
  const { env } = await newRunner(world, ['orders'])
  const script =
    'echo "$ORDERS_USERNAME $ORDERS_HOST $ORDERS_PASSWORD $ORDERS_URL"; psql "$ORDERS_URL" -Atc "select current_user"'
  const end = await spawnCli(['run', '--redact', '--backend', 'orders', '--', 'sh', '-c', script], { env })
    .ended
  expect(end).toMatchObject({ code: 0, stderr: '' })
  expect(end.stdout).toMatch(/^(mf_\w+) \S+ \[redacted\] \[redacted\]\n\1\n$/)
})

test('a psql killed during a query leaves neither role nor session', async () => {
  const { agent, env } = await newRunner(world, ['orders'])
  const cwd = await project('psql', ENV)
  const script = 'echo "ready $$ $PGUSER"; exec psql -Atc "select pg_sleep(600)"'
  const run = spawnCli(['run', 'sh', '-c', script], { env, cwd })
  const [, pid, role = ''] = /ready (\d+) (\S+)/.exec(await run.said(/ready .*\n/, 'stdout')) ?? []
  expect(await database.hasRole(role)).toBe(true)
  process.kill(Number(pid), 'SIGKILL')
  expect(await run.ended).toMatchObject({ code: 137 })
  expect(await database.hasRole(role)).toBe(false)
  expect(await database.sql('SELECT 1 FROM pg_stat_activity WHERE usename = $1', [role])).toEqual([])
  expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
})
