import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordsOf } from '../cli/run-support.ts'
import { startWorld, type World } from '../cli/support.ts'
import { newSigner, times } from '../support/identity-tokens.ts'
import { installMayfly, runGuide } from './run-guide.ts'

let directory: string
let world: World
let platform: Server
let url: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-hosted-'))
  await writeFile(join(directory, 'mayfly.yaml'), '')
  world = await startWorld({ jobs: true, argv: { config: join(directory, 'mayfly.yaml') } })
  await world.app.newBackend({ name: 'reports' })
  const signer = newSigner('ES256')
  platform = createServer((request, response) => {
    const claims = { iss: url, sub: 'agt_01', aud: world.url, jti: randomUUID(), ...times(Date.now()) }
    if (request.url === '/jwks.json') response.end(JSON.stringify({ keys: [signer.jwk] }))
    else response.end(signer.sign({ ...claims, name: 'Nightly report' }))
  })
  platform.listen(0, '127.0.0.1')
  await once(platform, 'listening')
  url = `http://127.0.0.1:${(platform.address() as AddressInfo).port}`
})
afterAll(async () => {
  await world.close()
  platform.closeAllConnections()
  platform.close()
  await rm(directory, { recursive: true })
})

/** Prints a new token of the platform for one of its agents. */
async function installAgentToken(bin: string): Promise<void> {
  const path = join(bin, 'agent-token')
  const script = `#!${process.execPath}\nfetch('${url}/token').then((r) => r.text()).then((t) => process.stdout.write(t))\n`
  await writeFile(path, script)
  await chmod(path, 0o755)
}

test('docs/guides/hosted-agents.md works as shown', async () => {
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  await installAgentToken(bin)
  const env = {
    ...world.bareEnv,
    PATH: `${bin}:${world.bareEnv['PATH']}`,
    MAYFLY_SERVER: world.url,
    MAYFLY_DATA_DIR: world.app.directory,
    MAYFLY_CONFIG: join(directory, 'mayfly.yaml'),
  }
  await runGuide('docs/guides/hosted-agents.md', {
    env,
    cwd: world.home,
    replace: [
      // The look-alike is on this machine.
      ['issuer: https://agents.example.com', `issuer: ${url}\n    local: true`],
      ['https://agents.example.com', url],
      ['https://mayfly.example.com', world.url],
      ['/etc/mayfly', directory],
    ],
  })
  const { body } = await world.app.admin('GET', '/v1/admin/agents')
  const found = body.filter(({ name }: { name: string }) => name.startsWith('hosted-'))
  expect(found).toMatchObject([
    { identity: { kind: 'platform', name: 'hosted', issuer: url, values: ['agt_01'] } },
  ])
  expect(await recordsOf(world, found[0])).toMatchObject([{ backend: 'reports', status: 'revoked' }])
})
