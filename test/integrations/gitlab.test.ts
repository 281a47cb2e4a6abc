import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { recordsOf } from '../cli/run-support.ts'
import { installMayfly } from '../docs/run-guide.ts'
import { presetToken } from '../support/preset-tokens.ts'
import { type GitlabJob, include, runGitlabJob, TEMPLATE } from './gitlab-component.ts'
import { type KeylessWorld, startKeylessWorld } from './keyless-world.ts'

const pinned = Object.fromEntries(presetToken('gitlab').pinned)
const ENTRY = {
  subject_pattern: '.+',
  claims: pinned,
  agent: 'gitlab-{job_id}',
  scopes: ['demo:*'],
  token_ttl: '1h',
}

let world: KeylessWorld
beforeAll(async () => {
  world = await startKeylessWorld({ preset: 'gitlab', entry: ENTRY })
  await installMayfly(join(world.home, 'bin'))
  await writeFile(
    join(world.home, '.mayfly.yaml'),
    'credentials: { demo: { backend: demo, env: { API_TOKEN: token } } }\n',
  )
  // What a job sees; $API_TOKEN must not be in its log.
  const report = `#!/bin/sh\nprintf 'MAYFLY_ID_TOKEN=%s\\n' "\${MAYFLY_ID_TOKEN-unset}"\necho "got $API_TOKEN for $*" | tee job.log\nwc -c <job.log\n`
  await writeFile(join(world.home, 'report.sh'), report, { mode: 0o755 })
})
afterAll(() => world.close())

const runJob = (job: GitlabJob, more: Readonly<Record<string, string>> = {}) => {
  const path = `${join(world.home, 'bin')}:${world.bareEnv['PATH']}`
  return runGitlabJob(job, world.issuer, { cwd: world.home, env: { ...world.bareEnv, PATH: path }, more })
}

const INPUTS = { image: 'registry.example.com/jobs:1', command: './report.sh --of "two: words" # no comment' }

test('the template is a header with inputs and one job', async () => {
  expect(parseAllDocuments(await readFile(TEMPLATE, 'utf8')).map(({ errors }) => errors)).toEqual([[], []])
  await expect(include({ image: 'x', command: 'y' })).rejects.toThrow('server is required')
  await expect(include({ ...INPUTS, server: 'https://a b' })).rejects.toThrow('not of the form')
  await expect(include({ ...INPUTS, server: 'https://$HOST' })).rejects.toThrow('not of the form')
  const jobs = await include({ ...INPUTS, server: world.url, job: 'report', stage: 'deploy' })
  expect(jobs).toMatchObject({
    report: { stage: 'deploy', image: INPUTS.image, id_tokens: { MAYFLY_ID_TOKEN: { aud: world.url } } },
  })
})

test('the job gets its credentials by its id token, and leaves nothing', async () => {
  const { mayfly } = await include({ ...INPUTS, server: world.url })
  if (mayfly === undefined) throw new Error('no job')
  const { code, after, log } = await runJob(mayfly)
  expect({ code, after, log }).toMatchObject({ code: 0, after: 0 })
  // The command has the credential, and not the token that it came with; the log has neither.
  expect(log).toContain('MAYFLY_ID_TOKEN=unset\n')
  expect(log).toContain('for --of two: words')
  expect(await readFile(join(world.home, 'job.log'), 'utf8')).toMatch(/^got eyJ/)
  expect(log).not.toContain('eyJ')
  expect(await world.agents()).toEqual([])
  expect(await recordsOf(world, { name: 'gitlab-302' })).toMatchObject([
    { backend: 'demo', status: 'revoked' },
  ])
})

test('the exit code of the command is that of the job', async () => {
  const { mayfly } = await include({
    ...INPUTS,
    server: world.url,
    command: 'false',
    options: '--backend demo',
  })
  if (mayfly === undefined) throw new Error('no job')
  expect(await runJob(mayfly)).toMatchObject({ code: 1, after: 0 })
})

test('a job of another project gets nothing', async () => {
  const { mayfly } = await include({ ...INPUTS, server: world.url })
  if (mayfly === undefined) throw new Error('no job')
  const foreign = world.issuer.sign({ aud: world.url, project_id: '21' })
  const { code, log } = await runJob(mayfly, { MAYFLY_ID_TOKEN: foreign })
  expect(code).toBe(4)
  expect(log).toContain('refused the token of GitLab CI')
  expect(await world.agents()).toEqual([])
})
