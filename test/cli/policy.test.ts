import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli, startWorld, type World } from './support.ts'

const POLICIES = `policies:
  - name: ci
    pattern: 'ci-*'
    scopes: ['demo:a', 'demo:b']
    deny: ['demo:secret']
    auto_approve: true
    max_agent_lifetime: 8h
    max_agents: 1
  - name: once
    pattern: 'once-*'
    scopes: ['demo:a']
    auto_approve: true
    rate: 1/day
  - name: rest
    pattern: '*'
    scopes: []
`

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld({ yaml: `${POLICIES}limits: { enrollments_per_minute: 1000 }\n` })
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
  await writeFile(join(world.home, 'good.yaml'), POLICIES)
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })
const file = async (text: string) => {
  await writeFile(join(world.home, 'm.yaml'), text)
  return 'm.yaml'
}

describe('policy check', () => {
  test('without a server: a sound file', async () => {
    const bare = { ...env, MAYFLY_SERVER: 'http://127.0.0.1:1' }
    const ended = await runCli(['policy', 'check', 'good.yaml'], { env: bare })
    expect(ended).toMatchObject({ code: 0, stderr: 'good.yaml: no faults.\n' })
    expect(ended.stdout).toMatch(/^ci +ci-\* +at once +demo:a demo:b$/m)
    expect((await runCli(['policy', 'check'], { env: { ...bare, MAYFLY_CONFIG: 'good.yaml' } })).code).toBe(0)
  })

  test('every fault of every policy, each with its line', async () => {
    const text = `listen: 0.0.0.0:1
policies:
  - name: a
    pattern: '['
    scopes: ['x y']
  - name: b
    pattern: b
    scopes: [1]
    max_ttl: 60
  - name: c
    pattern: c
    scopes: []
    rate: 10/fortnight
    max_agent: 3
  - name: A
    pattern: d
    scopes: ['admin:*']
    auto_approve: true
`
    const ended = await mayfly('policy', 'check', await file(text))
    expect([ended.code, ended.stdout]).toEqual([1, ''])
    const places = ended.stderr
      .trimEnd()
      .split('\n')
      .map((line) => /^mayfly: (m\.yaml:\d+):\d+: /.exec(line)?.[1])
    expect(places.sort()).toEqual([
      'm.yaml:13',
      'm.yaml:14',
      'm.yaml:15',
      'm.yaml:17',
      'm.yaml:4',
      'm.yaml:5',
      'm.yaml:8',
      'm.yaml:9',
    ])
    const json = JSON.parse((await mayfly('policy', 'check', 'm.yaml', '--json')).stdout)
    expect(json.faults).toHaveLength(8)
  })

  test('every fault of one policy, of shape and of meaning', async () => {
    const text = `policies:
  - name: ci
    pattern: 'ci-('
    scopes: ['admin:*', 7, 'x y']
    auto_approve: yes
    max_ttl: 5 minutes
    max_agent: 3
`
    const ended = await mayfly('policy', 'check', await file(text))
    const lines = ended.stderr.trimEnd().split('\n')
    const faults = lines.map((line) => /^mayfly: m\.yaml:(\d+):\d+: (.*)$/.exec(line)?.slice(1).join(' '))
    expect(faults.sort()).toEqual([
      expect.stringMatching(/^3 .*"ci-\("/),
      expect.stringMatching(/^4 policies\.0\.scopes\.0: .*admin scope/),
      expect.stringMatching(/^4 policies\.0\.scopes\.1 must be of type string/),
      expect.stringMatching(/^4 policies\.0\.scopes\.2: "x y" is not a scope/),
      expect.stringMatching(/^5 policies\.0\.auto_approve must be true or false/),
      expect.stringMatching(/^6 .*"5 minutes" is not a duration/),
      expect.stringMatching(
        /^7 "policies\.0\.max_agent" is not a setting, did you mean "max_agents"|^7 .*max_agent/,
      ),
    ])
    // A starting server says the same.
    const server = await mayfly('config', 'show', '--server-config', 'm.yaml')
    expect(server.stderr.trimEnd().split('\n').sort()).toEqual(lines.sort())
  })

  test.each([
    ['policies: {}', /m\.yaml:1:11: policies must be of type array/],
    ['polices: []', /did you mean "policies"/],
    ['listen: x', /contains no "policies"/],
    ['policies: [', /not valid YAML/],
    ['- a', /must contain "key: value" lines/],
    ['', /contains no "policies"/],
  ])('%j', async (text, message) => {
    const ended = await mayfly('policy', 'check', await file(text))
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringMatching(message)])
  })

  test('no file, or one that is not there', async () => {
    expect((await mayfly('policy', 'check')).code).toBe(2)
    expect(await mayfly('policy', 'check', 'none.yaml')).toMatchObject({
      code: 1,
      stderr: 'mayfly: none.yaml: the file "none.yaml" does not exist\n',
    })
  })
})

const CASES: readonly (readonly [
  name: string,
  scopes: readonly string[],
  decision: string,
  policy: string | null,
])[] = [
  ['ci-1', [], 'approve', 'ci'],
  ['CI-1', ['demo:a'], 'approve', 'ci'],
  ['ci-1', ['demo:a', 'demo:c'], 'wait', 'ci'],
  ['ci-1', ['admin:*'], 'wait', 'ci'],
  ['other', ['demo:a'], 'wait', 'rest'],
]

describe('policy explain', () => {
  const explain = async (name: string, scopes: readonly string[], ...more: string[]) => {
    const argv = scopes.flatMap((scope) => ['--scope', scope])
    return JSON.parse((await mayfly('policy', 'explain', name, ...argv, '--json', ...more)).stdout)
  }

  test.each(CASES)('%s %j: %s by %s, at the server, of the file, and when it enrolls', async (...row) => {
    const [name, scopes, decision, policy] = row
    const told = await explain(name, scopes)
    expect(told).toMatchObject({ name, decision, policy })
    expect(told.reason === null).toBe(decision === 'approve')
    expect(await explain(name, scopes, '--file', 'good.yaml')).toEqual(told)
    const enrolled = await enroll(name, scopes)
    expect(enrolled.status).toBe(decision === 'approve' ? 'approved' : 'pending')
    if (decision === 'wait') expect(enrolled.note).toBe(told.reason)
    else expect((await world.app.admin('DELETE', `/v1/admin/agents/${name}`)).status).toBe(204)
  })

  test('the server also counts the existing agents', async () => {
    await enroll('ci-full', [])
    expect(await explain('ci-next', [])).toMatchObject({
      decision: 'wait',
      reason: expect.stringMatching(/maximum number of agents/),
    })
    // Its name is taken, too, for which the policy would only add a suffix.
    expect((await explain('ci-full', [])).reason).toMatch(/maximum number of agents/)
    expect(await explain('ci-next', [], '--file', 'good.yaml')).toMatchObject({ decision: 'approve' })
  })

  test('asking does not count as an approval', async () => {
    for (let i = 0; i < 3; i += 1) expect(await explain('once-1', [])).toMatchObject({ decision: 'approve' })
    expect((await enroll('once-1', [])).status).toBe('approved')
    expect((await explain('once-2', [])).reason).toMatch(/rate limit/)
  })

  test('for people', async () => {
    const { stdout } = await mayfly('policy', 'explain', 'other')
    expect(stdout).toMatch(/^decision: needs an administrator$/m)
    expect(stdout).toMatch(/^ci +ci-\* +does not match$/m)
    expect(stdout).toMatch(/^rest +\* +decides$/m)
  })

  test.each<[string, string[], number]>([
    ['a scope of no form', ['x', '--scope', '!'], 2],
    ['a scope of no form, of a file', ['x', '--scope', '!', '--file', 'good.yaml'], 2],
    ['a name of no form', ['a b'], 2],
    ['a file with faults', ['x', '--file', 'none.yaml'], 1],
    ['no name', [], 2],
  ])('%s', async (_, argv, code) => {
    expect(await mayfly('policy', 'explain', ...argv)).toMatchObject({ code, stdout: '' })
  })

  test('without the scope, names it', async () => {
    expect(await runCli(['policy', 'explain', 'x'], { env: world.env })).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('admin:policies:read'),
    })
  })
})

async function enroll(name: string, scopes: readonly string[]) {
  const public_key = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  const asked = scopes.length === 0 ? {} : { scopes }
  const { body } = await world.app.as(undefined).post('/v1/enroll', { name, public_key, ...asked })
  const found = await world.app.admin('GET', `/v1/admin/pending?status=${body.status}&limit=1000`)
  return found.body.find((one: { id: string }) => one.id === body.id)
}
