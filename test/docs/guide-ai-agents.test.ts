import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../cli/support.ts'
import { installMayfly, runGuide } from './run-guide.ts'

const POLICY = [
  'policies:',
  '  - {name: sandboxes, pattern: "sandbox-*", scopes: ["gateway:chat"], auto_approve: true, max_agent_lifetime: 8h}',
].join('\n')

let world: World
let gateway: { server: Server; url: string; callers: string[] }
beforeAll(async () => {
  world = await startWorld({ yaml: POLICY, jobs: true })
  await world.app.newBackend({ name: 'gateway', config: { audience: 'llm-gateway' }, max_ttl: '1h' })
  gateway = await startGateway(`${world.url}/backends/gateway`)
})
afterAll(async () => {
  gateway.server.close()
  await world.close()
})

/** What stands before the models: it lets those in who have a token of the backend. */
async function startGateway(issuer: string) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
  const callers: string[] = []
  const server = createServer(async (request, reply) => {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const found = await jwtVerify(token, keys, { issuer, audience: 'llm-gateway' }).catch(() => undefined)
    if (found !== undefined) callers.push(String(found.payload['agent_name'] ?? found.payload.sub))
    reply.writeHead(found === undefined ? 401 : 200).end('{"data":[]}\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { server, url: `http://127.0.0.1:${address.port}`, callers }
}

test('docs/guides/ai-agents.md does what it says', async () => {
  const bin = join(world.home, 'bin')
  await installMayfly(bin)
  const { XDG_CONFIG_HOME: _, XDG_CACHE_HOME: __, XDG_DATA_HOME: ___, ...bare } = world.bareEnv
  const env = {
    ...bare,
    PATH: `${bin}:${bare['PATH']}`,
    // The administrator sits at the server.
    MAYFLY_SERVER: world.url,
    MAYFLY_DATA_DIR: world.app.directory,
    GIT_CONFIG_NOSYSTEM: '1',
  }
  const results = await runGuide('docs/guides/ai-agents.md', {
    env,
    cwd: world.home,
    replace: [
      ['https://mayfly.example.com', world.url],
      ['https://gateway.example.com', gateway.url],
    ],
  })
  expect(results.length).toBeGreaterThan(10)
  expect(gateway.callers).toHaveLength(2)
  const { body: ends } = await world.app.admin('GET', '/v1/admin/audit?action=agent.deleted')
  expect(ends).toMatchObject([{ agent_name: 'coder' }])
  // All that was issued has ended.
  const { body: tokens } = await world.app.admin('GET', '/v1/admin/tokens?backend=gateway&status=active')
  expect(tokens).toEqual([])

  // As Claude Code does it.
  const settings = JSON.parse(await readFile(join(world.home, '.claude/settings.local.json'), 'utf8'))
  expect(Number(settings.env.CLAUDE_CODE_API_KEY_HELPER_TTL_MS)).toBeGreaterThan(0)
  const refused = promisify(execFile)('/bin/sh', ['-c', settings.apiKeyHelper], { env })
  await expect(refused).rejects.toMatchObject({ code: 4, stdout: '' })
})
