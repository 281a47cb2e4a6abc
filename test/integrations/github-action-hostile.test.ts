import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readWanted } from '../../integrations/github-action/src/wanted.ts'
import { type Routes, startFalseServer } from '../cli/false-server.ts'
import { startWorkloadIssuer, type WorkloadIssuer } from '../support/workload-issuer.ts'
import { type Command, runStep, type Step } from './fake-runner.ts'

let issuer: WorkloadIssuer
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-runner-'))
  issuer = await startWorkloadIssuer('github')
})
afterAll(async () => {
  await issuer.close()
  await rm(directory, { recursive: true, force: true })
})

const RUN = 'run_06dzt7n1x5q9v3k6c8m2t4w0pb'
const NO_ROUTE: Routes = {}
const STARTED = { id: RUN, heartbeat: '1h' }

/** What a server answers to the action; `more` replaces what is to be hostile. */
const routes = (fields: Record<string, unknown>, more: Routes = NO_ROUTE): Routes => ({
  'POST /oauth/token': () => [200, { access_token: 'access-token', expires_in: 3_600, scope: 'demo' }],
  'POST /v1/runs': () => [201, STARTED],
  'POST /api/v1/credentials': () => [
    201,
    {
      id: 'cred_1',
      backend: 'demo',
      token: 'the-token',
      fields,
      ttl: '10m',
      scopes: [],
      created_at: '',
      expires_at: '',
    },
  ],
  [`DELETE /v1/runs/${RUN}`]: () => [200, STARTED],
  'DELETE /v1/login': () => [204, undefined],
  ...more,
})

/** Both steps against such a server. */
async function bothSteps(all: Routes, env: string): Promise<{ main: Step; post: Step; got: string[] }> {
  const server = await startFalseServer(all)
  const job = { directory, env: { PATH: process.env['PATH'] ?? '', ...issuer.jobEnv } }
  try {
    const main = await runStep(job, 'main', { server: server.url, env })
    const post = await runStep(job, 'post', {}, main.state)
    return { main, post, got: server.got.map(({ method, path }) => `${method} ${path}`) }
  } finally {
    await server.close()
  }
}

const commandsBut = ({ commands }: Step, name: string): Command[] =>
  commands.filter((one) => one.name !== name)
const masksOf = ({ commands }: Step) =>
  commands.filter(({ name }) => name === 'add-mask').map(({ data }) => data)

/** Each as the value of a secret field and of one that is shown. */
const VALUES: Readonly<Record<string, string>> = {
  'several lines': '-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----\n',
  'carriage returns': 'first-part\r\nsecond-part\rthird-part',
  'a variable after a line': 'x\nNODE_OPTIONS=--require=/tmp/evil.js\nPATH<<EOF\n/tmp\nEOF\n',
  'delimiters that others use': 'x\nghadelimiter_0\nEOF\n_GitHubActionsFileCommandDelimeter_\nEVIL=1',
  commands: '::set-output name=run::evil\n##[add-path]/tmp\n::stop-commands::end\n::add-mask::a',
  escapes: '100%25 %0A::warning::x %0D %',
  'an equals sign and a heredoc': 'a=b<<c',
  nothing: '',
  'white space': ' \n ',
  'other letters': 'pässwörd 🔑\u2028\u0085end',
}

test.each(Object.entries(VALUES))(
  'a secret with %s arrives as it is, masked, and sets nothing else',
  async (_, value) => {
    const { main, post } = await bothSteps(
      routes({ secret_part: value, host: value }),
      'A=demo:secret_part\nB=demo:host\nC=demo',
    )
    expect(main).toMatchObject({ code: 0, stderr: '', outputs: { run: RUN } })
    const { MAYFLY_SERVER, ...env } = main.env
    expect(env).toEqual({ A: value, B: value, C: 'the-token' })
    expect(commandsBut(main, 'add-mask')).toEqual([])
    const masks = masksOf(main)
    expect(masks).toContain('the-token')
    if (value.trim() === '') return
    expect(masks).toContain(value)
    // The log is masked line by line.
    for (const line of value.split(/[\r\n]+/))
      if (line.length > 3) expect(masks.some((mask) => mask === line.trim())).toBe(true)
    expect(post).toMatchObject({ code: 0, stdout: '' })
  },
)

test('what is shown of a credential, such as its host, is not masked: every log would be unreadable', async () => {
  const { main } = await bothSteps(
    routes({ host: 'db.internal', port: 5432, username: 'mf_1' }),
    'H=demo:host\nP=demo:port\nU=demo:username',
  )
  expect(main.env).toMatchObject({ H: 'db.internal', P: '5432', U: 'mf_1' })
  expect(masksOf(main)).toEqual(['the-token'])
})

test('a NUL byte cannot be in a variable', async () => {
  const { main, got } = await bothSteps(routes({ part: 'a\0b' }), 'A=demo:part')
  expect(main).toMatchObject({ code: 1, env: {} })
  expect(got).toContain(`DELETE /v1/runs/${RUN}`)
})

const HOSTILE_MESSAGE = 'no\n::set-output name=run::evil\r\n##[add-path]/tmp %0A::add-mask::a'
const HOSTILE: Readonly<Record<string, Routes>> = {
  'the id of the run': { 'POST /v1/runs': () => [201, { id: 'run_1\nEVIL=1', heartbeat: '1h' }] },
  'the heartbeat': { 'POST /v1/runs': () => [201, { id: RUN, heartbeat: '0\nEVIL=1' }] },
  'no object': { 'POST /v1/runs': () => [201, 'run'] },
  'the message of a refusal': {
    'POST /oauth/token': () => [400, { error: 'invalid_grant', error_description: HOSTILE_MESSAGE }],
  },
  'the message of a refused credential': {
    'POST /api/v1/credentials': () => [
      403,
      { error: { code: 'scope_not_allowed', message: HOSTILE_MESSAGE } },
    ],
  },
  'fields that are inherited': {
    'POST /api/v1/credentials': () => [
      201,
      { id: 'c', backend: 'demo', token: 't-t-t', fields: {}, expires_at: '' },
    ],
  },
}

test.each(Object.entries(HOSTILE))('a server that is hostile in %s sets nothing', async (_, more) => {
  const { main, post } = await bothSteps(routes({}, more), 'A=demo:constructor')
  expect(main).toMatchObject({ code: 1, env: {}, outputs: {} })
  expect(commandsBut(main, 'add-mask').map(({ name }) => name)).toEqual(['error'])
  // One line is one command, and none of the text begins another.
  expect(
    main.stdout.split('\n').filter((line) => line !== '' && !line.startsWith('::add-mask::')),
  ).toHaveLength(1)
  expect(post).toMatchObject({ code: 0, stdout: '' })
})

test('a server that sends the action elsewhere gets nothing there', async () => {
  const elsewhere = await startFalseServer(routes({}))
  const redirect = { 'POST /oauth/token': () => [307, { location: elsewhere.url }] as const }
  const { main } = await bothSteps(routes({}, redirect), 'A=demo')
  expect(main.code).toBe(1)
  expect(elsewhere.got).toEqual([])
  await elsewhere.close()
})

const ADDRESSES = [
  '',
  'mayfly.example.com',
  'http://mayfly.example.com',
  'https://u:p@mayfly.example.com',
  'https://m/?a=b',
  'file:///x',
]
test.each(ADDRESSES)('the address %j is refused before anything is asked', async (server) => {
  const before = issuer.asked.length
  const job = { directory, env: { PATH: process.env['PATH'] ?? '', ...issuer.jobEnv } }
  const main = await runStep(job, 'main', { server })
  expect(main).toMatchObject({
    code: 1,
    env: {},
    commands: [{ name: 'error', data: expect.stringContaining('server') }],
  })
  expect(issuer.asked).toHaveLength(before)
})

const LINES = [
  'TOKEN',
  '=demo',
  'TOKEN=',
  'TOKEN=demo:',
  'A B=demo',
  'TOKEN=demo extra',
  'TOKEN<<EOF=demo',
  'PATH=demo',
  'NODE_OPTIONS=demo',
  'LD_PRELOAD=demo',
  'BASH_ENV=demo',
  'GITHUB_TOKEN=demo',
  'RUNNER_TEMP=demo',
  'ACTIONS_ID_TOKEN_REQUEST_URL=demo',
  'CI=demo',
  'MAYFLY_SERVER=demo',
  '1A=demo',
  'A=demo\nA=demo:id',
  'ÄÖ=demo',
]
test.each(LINES)('the line %j of the input env is refused, and not repeated', (line) => {
  expect(() => readWanted(`# what the job needs\n${line}`)).toThrow(/^Line [23] of the input env/)
})

test('lines of the input env name backends and fields', () => {
  expect(readWanted('\r\nA=orders\r\n  # none\n B_2=orders:password \n')).toEqual([
    { variable: 'A', backend: 'orders', field: 'token' },
    { variable: 'B_2', backend: 'orders', field: 'password' },
  ])
})
