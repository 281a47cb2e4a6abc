import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner } from '../../cli/run-support.ts'
import { spawnCli } from '../../cli/support.ts'
import { type ProxyWorld, startProxyWorld } from './world.ts'

let world: ProxyWorld
beforeAll(async () => {
  world = await startProxyWorld()
})
afterAll(() => world.close())

const SCOPES = ['gateway:*', 'secure:*', 'demo:*']

async function runShell(script: string, flags: readonly string[] = ['--backend', 'gateway'], more = {}) {
  const { agent, env } = await newRunner(world, SCOPES)
  const run = spawnCli(['run', '--proxy', ...flags, '--', 'sh', '-c', script], { env: { ...env, ...more } })
  return { agent, run }
}

test('a command gets placeholders, and the upstream gets the secret', async () => {
  const { run } = await runShell(
    'echo "token $GATEWAY_TOKEN"; curl -s -H "Authorization: Bearer $GATEWAY_TOKEN" "$GATEWAY_URL/v1/x"',
  )
  const end = await run.ended
  console.log(end)
  expect(end.code).toBe(0)
  const secret = world.plain.arrived.at(-1)?.authorization ?? ''
  expect(secret).toMatch(/^Bearer eyJ/)
  expect(end.stdout + end.stderr).not.toContain(secret.slice(7))
})
