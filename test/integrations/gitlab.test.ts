import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { recordsOf } from '../cli/run-support.ts'
import { installMayfly } from '../docs/run-guide.ts'
import { presetToken } from '../support/preset-tokens.ts'
import { type KeylessWorld, startKeylessWorld } from './keyless-world.ts'

const TEMPLATE = fileURLToPath(new URL('../../integrations/gitlab/templates/mayfly.yml', import.meta.url))

interface Input {
  readonly default?: string
  readonly regex?: string
}

interface Job {
  readonly stage: string
  readonly image: string
  readonly id_tokens: Readonly<Record<string, { readonly aud: string }>>
  readonly variables: Readonly<Record<string, string>>
  readonly script: readonly string[]
  readonly after_script: readonly string[]
}

/** As GitLab: inputs are required unless they have a default, are checked, and replace their places in the text (docs.gitlab.com/ci/inputs). */
async function include(inputs: Readonly<Record<string, string>>): Promise<Record<string, Job>> {
  const text = await readFile(TEMPLATE, 'utf8')
  const [header, ...rest] = text.split(/^---$/m)
  expect(rest).toHaveLength(1)
  const known: Record<string, Input> = parse(header ?? '').spec.inputs
  for (const name of Object.keys(inputs)) expect(Object.keys(known)).toContain(name)
  const filled = (rest[0] ?? '').replace(/\$\[\[ inputs\.([\w-]+) \]\]/g, (_, name: string) => {
    const input = known[name]
    const value = inputs[name] ?? input?.default
    if (input === undefined || value === undefined) throw new Error(`the input ${name} is required`)
    if (input.regex !== undefined && !new RegExp(input.regex).test(value))
      throw new Error(`the input ${name} is not of the form ${input.regex}`)
    return value
  })
  expect(filled).not.toContain('$[[')
  return parse(filled)
}

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

/** As its runner: one shell for the script, another for `after_script`, and the log of both. */
async function runJob(
  { id_tokens, variables, script, after_script }: Job,
  more: Readonly<Record<string, string>> = {},
) {
  const tokens = Object.entries(id_tokens).map(([name, { aud }]) => [name, world.issuer.sign({ aud })])
  const path = `${join(world.home, 'bin')}:${world.bareEnv['PATH']}`
  const env = { ...world.bareEnv, PATH: path, ...variables, ...Object.fromEntries(tokens), ...more }
  let log = ''
  const shell = async (lines: readonly string[]) => {
    const child = spawn('bash', ['-eo', 'pipefail', '-c', lines.join('\n')], { env, cwd: world.home })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        log += text
      })
    child.stdin.end()
    return (await once(child, 'close'))[0]
  }
  const code = await shell(script)
  // Whatever became of the script.
  const after = await shell(after_script)
  return { code, after, log }
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
