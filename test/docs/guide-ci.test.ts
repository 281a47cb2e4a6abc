import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { openProjectFile } from '../../src/cli/project-file/open.ts'
import { readProjectFile } from '../../src/cli/project-file/read.ts'
import { recordsOf } from '../cli/run-support.ts'
import { startWorld, type World } from '../cli/support.ts'
import { addOrdersDatabase, type OrdersDatabase } from '../support/postgres-backend.ts'
import { installMayfly, runGuide } from './run-guide.ts'

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))

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

test('docs/guides/ci.md does what it says, its jobs too', async () => {
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  const bare = { ...world.bareEnv, PATH: `${bin}:${world.env['PATH']}` }
  // The administrator sits at the server.
  const env = { ...bare, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
  await runGuide('docs/guides/ci.md', {
    env,
    cwd: world.home,
    replace: [['https://mayfly.example.com', world.url]],
  })
  expect(await readFile(join(world.home, 'count.txt'), 'utf8')).toBe('1\n')
  expect(await recordsOf(world, { name: 'runner-7' })).toMatchObject([{ status: 'revoked' }])

  const { oidc } = JSON.parse(await readFile(join(world.home, 'ci-orders.json'), 'utf8'))
  const secrets = { MAYFLY_CLIENT_ID: oidc.client_id, MAYFLY_CLIENT_SECRET: oidc.client_secret }
  const jobs = await jobsOf('guides/ci.md')
  expect(jobs).toHaveLength(2)
  for (const { script, variables } of jobs) {
    await writeFile(join(world.home, 'count.txt'), '')
    expect(await bash(script, { ...bare, ...secrets, ...variables, MAYFLY_SERVER: world.url })).toEqual({
      code: 0,
      said: '',
    })
    expect(await readFile(join(world.home, 'count.txt'), 'utf8')).toBe('1\n')
  }
  const records = await recordsOf(world, { name: 'ci-orders' })
  expect(records).toHaveLength(jobs.length)
  for (const record of records)
    expect(record).toMatchObject({
      status: 'revoked',
      actions: expect.arrayContaining(['credential.issued', 'credential.revoked']),
    })
})

interface Step {
  run?: string
  env?: Record<string, string>
}

/** What the runners of both systems would run, from the blocks of YAML that are jobs. */
async function jobsOf(path: string): Promise<{ script: string; variables: Record<string, string> }[]> {
  const text = await readFile(join(DOCS, path), 'utf8')
  const blocks = [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map((match) => parse(match[1] ?? ''))
  const github = blocks.flatMap(({ jobs = {} }) =>
    Object.values(jobs as Record<string, { steps: Step[] }>).flatMap(({ steps }) => steps),
  )
  const gitlab = blocks.flatMap((block) => Object.values(block).filter(isGitlabJob))
  const ofGithub = github.flatMap(({ run, env = {} }) => {
    if (run === undefined) return []
    // Every variable that is a secret is one that the guide names.
    for (const [name, value] of Object.entries(env))
      if (value.includes('secrets.')) expect(value).toBe(`\${{ secrets.${name} }}`)
    return [{ script: run, variables: {} }]
  })
  return [
    ...ofGithub,
    ...gitlab.map(({ script, variables }) => ({ script: script.join('\n'), variables: { ...variables } })),
  ]
}

function isGitlabJob(value: unknown): value is { script: string[]; variables: Record<string, string> } {
  return typeof value === 'object' && value !== null && 'script' in value
}

/** As both run a step: `bash -e`, with nothing on standard input. */
async function bash(script: string, env: Record<string, string>): Promise<{ code: unknown; said: string }> {
  const child = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], {
    env,
    cwd: world.home,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (said += text))
  const [code] = await once(child, 'close')
  return { code, said }
}

test('the example in docs/reference/project-file.md is one', async () => {
  const text = await readFile(join(DOCS, 'reference/project-file.md'), 'utf8')
  await writeFile(join(world.home, 'example.yaml'), /^```yaml\n([\s\S]*?)^```$/m.exec(text)?.[1] ?? '')
  const [orders, reports] = await readProjectFile(await openProjectFile({ cwd: world.home }, 'example.yaml'))
  expect(orders?.env.map(({ variable }) => variable)).toContain('PGPASSWORD')
  expect(reports?.files.map(({ fileName }) => fileName)).toEqual(['REPORTS_TOKEN_FILE', 'reports.json'])
})
