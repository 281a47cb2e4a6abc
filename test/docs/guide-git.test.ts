import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../cli/support.ts'
import { startForge } from '../support/forge.ts'
import { type GitServer, newRepository } from '../support/git-server.ts'
import { installMayfly, runGuide } from './run-guide.ts'

let world: World
let server: GitServer
beforeAll(async () => {
  world = await startWorld({ scopes: ['forge:read', 'forge:write'] })
  server = await startForge(world.app)
  await newRepository(server, 'project.git')
})
afterAll(async () => {
  await server.close()
  await world.close()
})

test('docs/guides/git.md does what it says', async () => {
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  const gnupg = join(world.home, 'g')
  await mkdir(gnupg, { mode: 0o700 })
  const env = {
    ...world.env,
    PATH: `${bin}:${world.env['PATH']}`,
    GNUPGHOME: gnupg,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
  }
  const results = await runGuide('docs/guides/git.md', {
    env,
    cwd: world.home,
    replace: [
      ['https://git.example.com', server.url],
      ['git.example.com', server.url],
    ],
  })
  const said = results.map(({ output }) => output).join('')
  expect(said).toContain(`Good signature from "${world.agent.name} <${world.agent.signing_email}>"`)
  expect((await world.agent.client.get('/v1/active')).body).toEqual([])
  const { body: signed } = await world.app.admin('GET', '/v1/admin/audit?action=signing_key.used')
  expect(signed.map(({ outcome }: { outcome: string }) => outcome).sort()).toEqual(['denied', 'ok'])
})
