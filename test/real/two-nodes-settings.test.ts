import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newHome, runCli } from '../cli/support.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'
import { poll } from '../support/server-process.ts'

let server: TestPostgres
let database: TestDatabase
let folder: string
let home: string
let env: Record<string, string>
const nodes: TestApp[] = []
const policy = (name: string) => `policies: [{ name: ${name}, pattern: "x-*", scopes: [demo] }]\n`
const fileOf = (name: string) => join(folder, `${name}.yaml`)

async function startNode(name: string): Promise<TestApp> {
  await writeFile(fileOf(name), policy('one'))
  const [first] = nodes
  const node = await startApp({
    databaseUrl: database.url,
    argv: { config: fileOf(name) },
    jobs: true,
    ...(first === undefined ? {} : { masterKeyFile: join(first.directory, 'master.key') }),
  })
  nodes.push(node)
  return node
}

beforeAll(async () => {
  server = await startPostgres()
  database = await server.createDatabase()
  folder = await mkdtemp(join(tmpdir(), 'mayfly-nodes-'))
  ;({ home, env } = await newHome())
})
afterAll(async () => {
  for (const node of nodes.reverse()) await node.close()
  await database.drop()
  await server.stop()
  await Promise.all([folder, home].map((path) => rm(path, { recursive: true, force: true })))
})

test('doctor names a node with other files, until it is reloaded', { timeout: 120_000 }, async () => {
  const a = await startNode('a')
  const b = await startNode('b')
  const examine = async () => {
    const argv = ['doctor', '--json', '--server', a.url, '--data-dir', a.directory]
    const findings: { check: string; level: string; message: string }[] = JSON.parse(
      (await runCli(argv, { env, cwd: home })).stdout,
    )
    return findings.find(({ check }) => check === 'nodes')
  }
  const same = await poll('both nodes', examine)
  expect(same).toMatchObject({ level: 'ok', message: 'The 2 nodes have the same settings.' })
  await writeFile(fileOf('a'), policy('two'))
  await a.local.post('/v1/admin/reload')
  expect(await examine()).toMatchObject({ level: 'warn', message: expect.stringContaining(': policies.') })
  await writeFile(fileOf('b'), policy('two'))
  await b.local.post('/v1/admin/reload')
  await poll('the agreement', async () => (await examine())?.level === 'ok')
})
