import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../cli/support.ts'
import { installMayfly, runGuide } from './run-guide.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld({ jobs: true })
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  env = {
    ...world.bareEnv,
    PATH: `${bin}:${world.bareEnv['PATH']}`,
    MAYFLY_SERVER: world.url,
    MAYFLY_DATA_DIR: world.app.directory,
  }
})
afterAll(() => world.close())

/** The agent of the pages; its token is in REVIEWER. */
async function runPage(path: string, scopes = ['demo']) {
  const reviewer = await world.app.newAgent({ name: 'reviewer', scopes })
  await runGuide(path, { env: { ...env, REVIEWER: reviewer.token }, cwd: world.home })
  return reviewer
}

test('docs/guides/who-had-what.md works as shown', async () => {
  const reviewer = await runPage('docs/guides/who-had-what.md')
  await reviewer.client.delete('/v1/self')
})

test('docs/guides/add-a-scope.md works as shown', async () => {
  const reviewer = await runPage('docs/guides/add-a-scope.md', ['demo:read'])
  await reviewer.client.delete('/v1/self')
})

test('docs/guides/leaked-token.md works as shown', async () => {
  await runPage('docs/guides/leaked-token.md')
  await world.app.admin('DELETE', '/v1/admin/agents/reviewer')
})

test('docs/guides/end-an-agent.md works as shown', async () => {
  const reviewer = await runPage('docs/guides/end-an-agent.md')
  expect((await reviewer.client.get('/v1/status')).status).toBe(401)
  const { body } = await world.app.admin(
    'GET',
    `/v1/admin/audit?agent_id=${reviewer.id}&action=credential.revoked`,
  )
  expect(body).toHaveLength(1)
})
