import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner } from '../../cli/run-support.ts'
import { spawnCli } from '../../cli/support.ts'
import { environment, type ProxyWorld, startProxyWorld } from './world.ts'

let world: ProxyWorld
beforeAll(async () => {
  world = await startProxyWorld()
})
afterAll(() => world?.close())

test('a clock of the server that is set forward lets credentials expire, and revokes none', async () => {
  const { env } = await newRunner(world, ['gateway:*'])
  const file = join(world.home, 'clock.env')
  const proxy = spawnCli(['proxy', '--backend', 'gateway', '--ttl', '10m', '--write-env', file], {
    env,
    cwd: world.home,
  })
  await proxy.said('ready')
  const values = await environment(file)
  const ask = async () => {
    const headers = { authorization: `Bearer ${values.get('GATEWAY_TOKEN')}` }
    return (await fetch(`${values.get('MAYFLY_URL_GATEWAY_API')}/v1/models`, { headers })).status
  }
  expect(await ask()).toBe(200)
  const secret = () => world.plain.arrived.at(-1)?.authorization
  const before = secret()
  world.app.advance(20 * 60_000)
  // The old one is noticed to be gone, and a new one had.
  await expect.poll(async () => (await ask()) === 200 && secret() !== before, { timeout: 20_000 }).toBe(true)
  proxy.child.kill('SIGTERM')
  const { code, stderr } = await proxy.ended
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('revoked')])
})
