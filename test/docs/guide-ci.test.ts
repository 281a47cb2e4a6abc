import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { openProjectFile } from '../../src/cli/project-file/open.ts'
import { readProjectFile } from '../../src/cli/project-file/read.ts'
import { recordsOf } from '../cli/run-support.ts'
import { runCli, startWorld, type World } from '../cli/support.ts'
import { runStep } from '../integrations/fake-runner.ts'
import { type GitlabJob, include, runGitlabJob } from '../integrations/gitlab-component.ts'
import { addOrdersDatabase, type OrdersDatabase } from '../support/postgres-backend.ts'
import { startWorkloadIssuer, type WorkloadIssuer } from '../support/workload-issuer.ts'
import { installMayfly, runGuide } from './run-guide.ts'

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))

let directory: string
let config: string
let world: World
let database: OrdersDatabase
let github: WorkloadIssuer
let gitlab: WorkloadIssuer
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-ci-'))
  config = join(directory, 'mayfly.yaml')
  await writeFile(config, '')
  github = await startWorkloadIssuer('github')
  gitlab = await startWorkloadIssuer('gitlab', { ref_protected: 'true' })
  world = await startWorld({ jobs: true, argv: { config } })
  database = await addOrdersDatabase(world)
})
afterAll(async () => {
  await world.close()
  await database.close()
  await github.close()
  await gitlab.close()
  await rm(directory, { recursive: true })
})

test('docs/guides/ci.md does what it says, its jobs too', async () => {
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  const bare = { ...world.bareEnv, PATH: `${bin}:${world.env['PATH']}` }
  // The administrator sits at the server.
  const env = {
    ...bare,
    MAYFLY_SERVER: world.url,
    MAYFLY_DATA_DIR: world.app.directory,
    MAYFLY_CONFIG: config,
  }
  await runGuide('docs/guides/ci.md', {
    env,
    cwd: world.home,
    replace: [['https://mayfly.example.com', world.url]],
  })
  expect(await readFile(join(world.home, 'count.txt'), 'utf8')).toBe('1\n')
  expect(await recordsOf(world, { name: 'runner-7' })).toMatchObject([{ status: 'revoked' }])
  // The runner's login goes before what a job is.
  await rm(world.bareEnv['XDG_CONFIG_HOME'] ?? '', { recursive: true })
  await trustLookAlikes(env)

  const { oidc } = JSON.parse(await readFile(join(world.home, 'ci-orders.json'), 'utf8'))
  const jobs = await jobsOf('guides/ci.md')
  const secrets = { MAYFLY_CLIENT_ID: oidc.client_id, MAYFLY_CLIENT_SECRET: oidc.client_secret }
  const ends = { ...bare, ...secrets }
  expect(jobs.map(({ kind }) => kind).sort()).toEqual([...KINDS].sort())
  for (const job of jobs) {
    await writeFile(join(world.home, 'count.txt'), '')
    await runJob(job, job.kind.startsWith('secret') ? ends : bare)
    expect(await readFile(join(world.home, 'count.txt'), 'utf8')).toBe('1\n')
  }
  const agents = { 'ci-orders': 2, 'github-octo-org-octo-repo-29679449': 2, 'gitlab-project-20-302': 2 }
  for (const [name, count] of Object.entries(agents)) {
    const records = await recordsOf(world, { name })
    expect(records).toHaveLength(count)
    for (const record of records)
      expect(record).toMatchObject({
        status: 'revoked',
        actions: expect.arrayContaining(['credential.issued', 'credential.revoked']),
      })
  }
})

/** In place of the platforms, whose keys are elsewhere. */
async function trustLookAlikes(env: Readonly<Record<string, string>>): Promise<void> {
  let text = await readFile(config, 'utf8')
  const issuers = { 'https://token.actions.githubusercontent.com': github, 'https://gitlab.com': gitlab }
  for (const [issuer, { url }] of Object.entries(issuers)) {
    expect(text).toContain(`issuer: ${issuer}\n`)
    text = text.replace(`issuer: ${issuer}\n`, `issuer: ${url}\n    local: true\n`)
  }
  await writeFile(config, text)
  expect(await runCli(['server', 'reload'], { env })).toMatchObject({ code: 0 })
}

interface Step {
  uses?: string
  with?: Record<string, string>
  run?: string
  env?: Record<string, string>
}

const KINDS = ['github', 'github', 'gitlab', 'gitlab', 'secret-github', 'secret-gitlab'] as const

type CiJob =
  | { readonly kind: 'github' | 'secret-github'; readonly steps: readonly Step[] }
  | { readonly kind: 'gitlab' | 'secret-gitlab'; readonly job: GitlabJob }

/** The jobs of both systems, from the blocks of YAML that are some. */
async function jobsOf(path: string): Promise<CiJob[]> {
  const text = await readFile(join(DOCS, path), 'utf8')
  const blocks = [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map((match) => parse(match[1] ?? ''))
  const jobs = await Promise.all(blocks.map(jobsIn))
  return jobs.flat()
}

async function jobsIn(block: {
  jobs?: Record<string, { permissions?: Record<string, string>; steps: Step[] }>
  include?: { inputs: Record<string, string> }[]
}): Promise<CiJob[]> {
  const ofGithub = Object.values(block.jobs ?? {}).map(({ permissions, steps }): CiJob => {
    // Every variable that is a secret is one that the guide names.
    const secrets = steps.flatMap(({ env = {} }) =>
      Object.entries(env).filter(([, value]) => value.includes('secrets.')),
    )
    for (const [name, value] of secrets) expect(value).toBe(`\${{ secrets.${name} }}`)
    expect(permissions?.['id-token']).toBe(secrets.length === 0 ? 'write' : undefined)
    return { kind: secrets.length === 0 ? 'github' : 'secret-github', steps }
  })
  const included = await Promise.all((block.include ?? []).map(({ inputs }) => include(atHome(inputs))))
  const ofGitlab = [block, ...included]
    .flatMap((all) => Object.values(all))
    .filter(isGitlabJob)
    .map((job): CiJob => ({ kind: job.id_tokens === undefined ? 'secret-gitlab' : 'gitlab', job }))
  return [...ofGithub, ...ofGitlab]
}

const atHome = <T>(value: T): T =>
  JSON.parse(JSON.stringify(value).replaceAll('https://mayfly.example.com', world.url))

function isGitlabJob(value: unknown): value is GitlabJob {
  return typeof value === 'object' && value !== null && 'script' in value
}

async function runJob(one: CiJob, env: Readonly<Record<string, string>>): Promise<void> {
  if ('job' in one) {
    const job = atHome(one.job)
    const { code, log } = await runGitlabJob(job, gitlab, { env, cwd: world.home })
    expect({ code, log }).toMatchObject({ code: 0, log: expect.not.stringMatching(/mayfly:|error/i) })
    return
  }
  // A job of its own, with other variables to ask for a token.
  const job = { ...env, ...(one.kind === 'github' ? github.jobEnv : {}) }
  let exported: Readonly<Record<string, string>> = {}
  const posts: (() => Promise<unknown>)[] = []
  for (const step of atHome(one.steps)) {
    if (step.run !== undefined) {
      const own = Object.fromEntries(
        Object.entries(step.env ?? {}).filter(([, value]) => !value.includes('${{')),
      )
      expect(await bash(step.run, { ...job, ...exported, ...own })).toEqual({ code: 0, said: '' })
    } else if (step.uses?.includes('mayfly') === true) {
      const runner = { env: job, directory: world.home }
      const main = await runStep(runner, 'main', step.with ?? {})
      expect(main).toMatchObject({ code: 0, stderr: '' })
      exported = { ...exported, ...main.env }
      posts.push(() => runStep(runner, 'post', step.with ?? {}, main.state))
    }
  }
  for (const post of posts) expect(await post()).toMatchObject({ code: 0, stdout: '' })
}

/** As GitHub runs a step: `bash -e`, with nothing on standard input. */
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
  const file = await openProjectFile({ cwd: world.home }, 'example.yaml')
  const [orders, reports] = (await readProjectFile(file)).credentials
  expect(orders?.env.map(({ variable }) => variable)).toContain('PGPASSWORD')
  expect(reports?.files.map(({ fileName }) => fileName)).toEqual(['REPORTS_TOKEN_FILE', 'reports.json'])
})
