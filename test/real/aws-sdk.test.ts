import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectNoSecret, runCli, spawnCli } from '../cli/support.ts'
import { AWS_FIELDS, startToolsWorld, type ToolsWorld } from '../cli/tools-support.ts'
import { startSts } from '../support/aws-sts.ts'
import { run } from '../support/run-program.ts'

const CHILD = fileURLToPath(new URL('./aws-sdk-child.ts', import.meta.url))

let world: ToolsWorld
let env: Record<string, string>
beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('cloud', { fields: AWS_FIELDS })
  const directory = join(world.home, '.aws')
  await mkdir(directory)
  // Independent of this machine's configuration.
  env = {
    ...world.env,
    AWS_CONFIG_FILE: join(directory, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: join(directory, 'credentials'),
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_REGION: 'eu-west-1',
  }
})
afterAll(() => world.close())

/** The child as a program of its own, with `mayfly aws …` before it where given. */
async function sdk(provider: string, before: readonly string[] = [], more: Record<string, string> = {}) {
  const command = [process.execPath, CHILD, provider]
  const options = { env: { ...env, ...more } }
  const { code, stdout, stderr } =
    before.length === 0
      ? await run(command, options.env)
      : await spawnCli([...before, '--', ...command], options).ended
  return { code, stderr, answer: JSON.parse(stdout) as Record<string, string> }
}

describe('fromProcess', () => {
  beforeAll(async () => {
    const argv = ['aws', 'credential-process', '--backend', 'cloud', '--print']
    await writeFile(String(env['AWS_CONFIG_FILE']), (await runCli(argv, world)).stdout)
  })

  test('accepts the printed profile', async () => {
    const { code, answer, stderr } = await sdk('process')
    expect([code, stderr]).toEqual([0, ''])
    const [id] = await world.alive('cloud')
    expect(answer).toMatchObject({
      accessKeyId: `ASIA-${id}`,
      secretAccessKey: `secret/of+${id}`,
      sessionToken: `session==${id}`,
    })
    expect(Date.parse(String(answer['expiration']))).toBeGreaterThan(Date.now())
    expect((await sdk('process')).answer).toEqual(answer)
  })

  test('fails with our reason and no secret when nothing can be issued', async () => {
    const { code, answer } = await sdk('process', [], { MAYFLY_TOKEN: 'ckr_wrong' })
    expect(code).toBe(1)
    expect(answer['message']).toContain(
      'MAYFLY_TOKEN is set and takes precedence over a stored login. Correct it',
    )
    expectNoSecret(JSON.stringify(answer), 'ckr_wrong')
  })
})

describe('fromTokenFile', () => {
  const role = 'arn:aws:iam::123456789012:role/agent'
  const takeRole = (backend: string) => ['run', '--file', `AWS_WEB_IDENTITY_TOKEN_FILE=${backend}`]
  let sts: Awaited<ReturnType<typeof startSts>>
  const asRole = () => ({
    AWS_ENDPOINT_URL_STS: sts.url,
    AWS_ROLE_ARN: role,
    AWS_ROLE_SESSION_NAME: `mayfly-${world.agent.name}`,
  })
  beforeAll(async () => {
    await world.app.newBackend({ name: 'aws-sts', config: { audience: 'sts.amazonaws.com' } })
    sts = await startSts(`${world.url}/backends/aws-sts`, role)
  })
  afterAll(() => sts.close())

  test.each(['token-file', 'chain'])('assumes the role with our token, by %s', async (provider) => {
    const end = await sdk(provider, takeRole('aws-sts'), asRole())
    expect([end.code, end.stderr, end.answer]).toEqual([0, '', expect.anything()])
    expect(end.answer['accessKeyId']).toBe(`ASIA-${world.agent.id}`)
    expect(sts.seen.at(-1)).toMatchObject({
      agent_name: world.agent.name,
      session: `mayfly-${world.agent.name}`,
    })
    expect(await world.alive('aws-sts')).toEqual([])
  })

  test('refuses a token for another audience', async () => {
    const end = await sdk('token-file', takeRole('demo'), asRole())
    expect(end.code).toBe(1)
    expect(end.answer['name']).toBe('InvalidIdentityTokenException')
  })
})
