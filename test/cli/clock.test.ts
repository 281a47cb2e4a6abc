import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { POLICY_YAML } from './enroll-support.ts'
import { newHome, runCli, startWorld, type World } from './support.ts'

// An enrolled key signs what the server judges by its own clock; an agent in a container cannot set the one it has.
let world: World
let home: string
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld({ yaml: POLICY_YAML })
  const fresh = await newHome()
  home = fresh.home
  env = { ...fresh.env, MAYFLY_SERVER: world.url }
  expect(await runCli(['enroll', '--name', 'ci-clock'], { env })).toMatchObject({ code: 0 })
})
afterAll(async () => {
  await rm(home, { recursive: true, force: true })
  await world.close()
})

const SECOND_MS = 1_000
const YEAR_MS = 365 * 24 * 3_600 * SECOND_MS

async function getAt(ahead: number) {
  await rm(join(home, 'cache'), { recursive: true, force: true })
  return runCli(['get', 'demo'], { env, ahead })
}

async function refusals(): Promise<number> {
  const entries = await world.app.admin(
    'GET',
    '/v1/admin/audit?agent=ci-clock&action=token.refused&limit=1000',
  )
  return entries.body.length
}

test.each([10, -10, 40, -40, 200])('works with a clock that is %i s ahead', async (seconds) => {
  const before = await refusals()
  expect(await getAt(seconds * SECOND_MS)).toMatchObject({ code: 0, stderr: '' })
  expect(await refusals()).toBe(before)
})

test.each([-90 * SECOND_MS, 3_600 * SECOND_MS, -YEAR_MS, 30 * YEAR_MS])(
  'signs the login with the time of the server when its own clock is %i ms ahead',
  async (ahead) => {
    expect(await getAt(ahead)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^eyJ/), stderr: '' })
  },
)

test('reports an invalid login as invalid, with any clock', async () => {
  await world.app.admin('DELETE', '/v1/admin/agents/ci-clock')
  for (const ahead of [0, 3_600 * SECOND_MS])
    expect(await getAt(ahead)).toMatchObject({
      code: 4,
      stdout: '',
      stderr: expect.stringMatching(/The login is wrong, expired or deleted/),
    })
})
