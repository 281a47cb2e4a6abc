import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from '../cli/support.ts'
import { AWS_FIELDS, startToolsWorld, type ToolsWorld } from '../cli/tools-support.ts'
import { startSts } from '../support/aws-sts.ts'
import { installMayfly, runGuide } from './run-guide.ts'

const ROLE = 'arn:aws:iam::123456789012:role/agent'

let world: ToolsWorld
let sts: Awaited<ReturnType<typeof startSts>>
beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('cloud', { fields: AWS_FIELDS })
  sts = await startSts(`${world.url}/backends/aws-sts`, ROLE)
})
afterAll(async () => {
  sts.close()
  await world.close()
})

test('docs/guides/aws.md does what it says', async () => {
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  // The agent's login is in its profile: a variable would go before the administrator's token.
  const bare: Record<string, string> = { ...world.bareEnv, MAYFLY_SERVER: world.url }
  const login = await runCli(['login', '--token-file', '-'], { env: bare, stdin: world.agent.token })
  expect(login).toMatchObject({ code: 0 })
  await mkdir(join(world.home, '.aws'))
  // The program of the guide is in a directory of its own.
  await symlink(
    fileURLToPath(new URL('../../node_modules', import.meta.url)),
    join(world.home, 'node_modules'),
  )
  const results = await runGuide('docs/guides/aws.md', {
    env: {
      ...bare,
      PATH: `${bin}:${bare['PATH']}`,
      MAYFLY_DATA_DIR: world.app.directory,
      AWS_REGION: 'eu-west-1',
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_ENDPOINT_URL_STS: sts.url,
    },
    cwd: world.home,
  })
  expect(sts.seen).toMatchObject([{ sub: world.agent.id, session: `mayfly-${world.agent.name}` }])
  // What ran as long as a command is revoked; what a profile asked for stays for the next.
  const [held, ...others] = await world.alive()
  expect(others).toEqual([])
  expect(results.map(({ output }) => output).join('')).toContain(`ASIA-${held} until `)
})
