import { generateKeyPairSync } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decide, POLICY_YAML, pendingOf } from './enroll-support.ts'
import { newHome, runCli, spawnCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

let world: World
let admin: Record<string, string>
const homes: string[] = []
beforeAll(async () => {
  world = await startWorld({ yaml: POLICY_YAML })
  await world.app.newBackend({ name: 'more' })
  admin = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(async () => {
  await world.close()
  for (const home of homes) await rm(home, { recursive: true, force: true })
})

async function newMachine(): Promise<Record<string, string>> {
  const { home, env } = await newHome()
  homes.push(home)
  return { ...env, MAYFLY_SERVER: world.url }
}

test('mayfly pending shows what a request would change, and what the reader lacks', async () => {
  const agent = await world.app.newAgent({ name: 'asks', scopes: ['demo:a'] })
  const asked = { scopes: ['demo:a', 'demo:b', 'nowhere:x'] }
  const { id } = (await agent.client.post('/v1/request', asked)).body
  const { stdout } = await runCli(['pending', id], { env: admin })
  expect(stdout).toMatch(/^would gain: +demo:b$/m)
  expect(stdout).toMatch(/^has already: +demo:a$/m)
  expect(stdout).toMatch(/^cannot be given: +nowhere:x$/m)
  expect(stdout).not.toMatch(/^you lack/m)
  const reader = await world.app.newAgent({ name: 'reads', scopes: ['admin:enrollments:read', 'demo'] })
  const env = { ...admin, MAYFLY_TOKEN: reader.token }
  expect((await runCli(['pending', id], { env })).stdout).toMatch(
    /^you lack: +admin:enrollments:write, nowhere:x$/m,
  )
  await world.app.admin('POST', `/v1/admin/pending/${id}/reject`, {})
  expect((await runCli(['pending', id], { env: admin })).stdout).not.toContain('would gain')
  expect((await runCli(['pending', id, '--status', 'pending'], { env: admin })).code).not.toBe(0)
})

describe('an enrollment whose name is taken', () => {
  const enroll = async (name: string) => {
    const public_key = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
    return (await world.app.as(undefined).post('/v1/enroll', { name, scopes: ['demo'], public_key })).body.id
  }

  test('is shown as such, and approved only with --replace', async () => {
    const old = await world.app.newAgent({ name: 'desk' })
    const id = await enroll('desk')
    expect((await runCli(['pending'], { env: admin })).stdout).toMatch(/^enr_.*pending, name taken$/m)
    expect((await runCli(['pending', id], { env: admin })).stdout).toMatch(
      /^name taken: +by another agent: approve with --replace, or reject$/m,
    )
    const refused = await runCli(['approve', id, '--yes'], { env: admin })
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('An agent called desk exists.')
    expect(refused.stderr).toContain(`\`mayfly approve ${id} --replace\``)
    expect((await old.client.get('/v1/status')).status).toBe(200)
    const question = 'Delete the agent desk, and approve desk? [y/N] '
    const approved = await runTyping(['approve', id, '--replace', '--audience', 'sts.example'], admin, [
      [question, 'y'],
    ])
    expect(approved.stdout).toBe('Approved desk: demo.\n')
    expect((await old.client.get('/v1/status')).status).toBe(401)
    expect((await world.app.admin('GET', '/v1/admin/agents/desk')).body.audiences).toEqual(['sts.example'])
  })

  test('gets a name of its own under a policy that approves, and keeps it', async () => {
    const [one, other] = [await newMachine(), await newMachine()]
    const enroll = async (env: Record<string, string>) =>
      JSON.parse((await runCli(['enroll', '--name', 'ci-job', '--json'], { env })).stdout)
    expect((await enroll(one)).agent.name).toBe('ci-job')
    const { agent } = await enroll(other)
    expect(agent.name).toMatch(/^ci-job-[0-9a-z]{8}$/)
    expect((await enroll(other)).agent).toEqual(agent)
    expect(JSON.parse((await runCli(['status', '--json'], { env: other })).stdout)).toMatchObject(agent)
    expect((await runCli(['get', 'demo'], { env: other })).code).toBe(0)
  })
})

test('request --wait says that a request has expired', async () => {
  const expiring = await startWorld()
  try {
    const { said, ended } = spawnCli(['request', 'demo:x', '--wait'], { env: expiring.env })
    await said(/mayfly approve enr_\w+\n/)
    expiring.app.advance(25 * 3_600_000)
    expect(await ended).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('has expired: nobody decided within a day. Request it again.'),
    })
  } finally {
    await expiring.close()
  }
})

describe('a cached credential', () => {
  const stdin = 'protocol=https\nhost=git.example.com\n\n'
  const argv = ['git-credential', '--host', 'git.example.com', '--backend', 'more']
  const scopesOf = async (name: string): Promise<string[][]> =>
    (await world.app.admin('GET', `/v1/admin/tokens?agent=${name}&backend=more`)).body.map(
      (one: { scopes: string[] }) => one.scopes,
    )

  test('is replaced when its agent was given more scopes, and not before', async () => {
    const env = await newMachine()
    const { agent } = JSON.parse((await runCli(['enroll', '--name', 'ci-cached', '--json'], { env })).stdout)
    const get = () => runCli([...argv, 'get'], { env, stdin })
    const request = async (scope: string) => {
      expect((await runCli(['request', scope], { env })).code).toBe(0)
      return async (verb: 'approve' | 'reject') => {
        for (const { id } of await pendingOf(world.app)) await decide(world.app, id, verb)
      }
    }
    await (await request('more:a'))('approve')
    const first = (await get()).stdout
    const [rejected] = [await request('more:b')]
    expect((await get()).stdout).toBe(first)
    await rejected('reject')
    expect((await get()).stdout).toBe(first)
    await (await request('more:c'))('approve')
    const second = (await get()).stdout
    expect(second).not.toBe(first)
    expect((await get()).stdout).toBe(second)
    expect(await scopesOf(agent.name)).toEqual([['a', 'c'], ['a']])
  })

  test('is replaced when it covers less than the named scopes', async () => {
    const agent = await world.app.newAgent({ scopes: ['more'] })
    const env: Record<string, string> = { ...(await newMachine()), MAYFLY_TOKEN: agent.token }
    const get = () => runCli([...argv, '--scope', 'r:read', 'get'], { env, stdin })
    const first = (await get()).stdout
    expect((await get()).stdout).toBe(first)
    const directory = join(env['XDG_CACHE_HOME'] ?? '', 'mayfly', 'credentials')
    const [name = ''] = (await readdir(directory)).filter((one) => one.endsWith('.json'))
    const entry = JSON.parse(await readFile(join(directory, name), 'utf8'))
    for (const [scopes, isEnough] of [
      [['more:r'], true],
      [['r:write'], false],
    ] as const) {
      const text = JSON.stringify({ ...entry, credential: { ...entry.credential, scopes } })
      await writeFile(join(directory, name), text, { mode: 0o600 })
      expect((await get()).stdout === first).toBe(isEnough)
    }
  })
})
