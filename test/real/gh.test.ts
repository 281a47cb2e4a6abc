import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { github } from '../../src/backends/github/kind.ts'
import { kinds } from '../../src/backends/index.ts'
import type { Kind } from '../../src/backends/kind.ts'
import { startWorld, type World } from '../cli/support.ts'
import { installCommands } from '../cli/tools-support.ts'
import { makeCertificates } from '../support/certificates.ts'
import { startGitHub } from '../support/fakes/github.ts'
import { run } from '../support/run-program.ts'

let world: World
let fake: Awaited<ReturnType<typeof startGitHub>>
let proxy: Awaited<ReturnType<typeof startProxy>>
let env: Record<string, string>
let ca: string
beforeAll(async () => {
  known.push(viaTheFake as unknown as Kind)
  world = await startWorld({ scopes: ['*'] })
  const certificates = makeCertificates(world.home, 'api.github.com')
  ca = readFileSync(certificates.ca, 'utf8')
  fake = await startGitHub(certificates.server)
  fake.install('acme')
  proxy = await startProxy(Number(new URL(fake.url).port))
  env = { ...(await installCommands(world)), SSL_CERT_FILE: certificates.ca, HTTPS_PROXY: proxy.url }
})
afterAll(async () => {
  known.splice(known.indexOf(viaTheFake as unknown as Kind), 1)
  await world.close()
  proxy.close()
  await fake[Symbol.asyncDispose]()
})

/** Through it, programs reach the fake by the name of GitHub. */
async function startProxy(port: number) {
  const asked: string[] = []
  const server = createServer().on('connect', (request, client) => {
    asked.push(String(request.url))
    const upstream = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'))
    for (const socket of [client, upstream]) socket.on('error', () => {})
    upstream.pipe(client).pipe(upstream)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** The kind, with the configuration for github.com; its requests go to the fake. */
const viaTheFake: typeof github = {
  ...github,
  type: 'github-via-fake',
  async open(config, host) {
    const fetch: typeof host.fetch = (url, init, how) =>
      host.fetch(url.replace('https://api.github.com', fake.url), init, { ...how, ca, local: true })
    return github.open(config, { ...host, fetch })
  },
}
/** The server takes them at its start. */
const known = kinds as unknown as Kind[]

const mayflyRun = (...command: string[]) =>
  run(['mayfly', 'run', '--backend', 'gh', '--scope', 'acme/web:contents:read', '--', ...command], env)
/** Of each, the status with which it was refused. */
const MORE = `try() { gh "$@" 2>&1 | grep -o 'HTTP [0-9]*' || echo done; }
try api repos/acme/web/git/ref/heads/main --silent
try api repos/acme/api
try api repos/acme/web/labels -f name=bug
try api user`

/** What gh may do with `acme/web:contents:read`. */
async function expectScopes(): Promise<void> {
  const read = await mayflyRun('gh', 'api', 'repos/acme/web', '--jq', '.full_name')
  expect(read).toEqual({ code: 0, stderr: '', stdout: 'acme/web\n' })
  const { stdout } = await mayflyRun('sh', '-c', MORE)
  // The last: the token is that of no user, whatever its scopes.
  expect(stdout.trim().split('\n')).toEqual(['done', 'HTTP 404', 'HTTP 403', 'HTTP 403'])
  await expect.poll(() => fake.tokens.size).toBe(0)
}

test('gh works at github.com with nothing mapped, within the scope', async () => {
  const config = { app_id: '4711', private_key: fake.privateKey, owner: 'acme' }
  await world.app.newBackend({ type: viaTheFake.type, name: 'gh', config })
  await expectScopes()
  expect(new Set(proxy.asked)).toEqual(new Set(['api.github.com:443']))
  await world.app.admin('DELETE', '/v1/admin/backends/gh')
})

test('and at an Enterprise Server, whose host the variables name', async () => {
  const before = proxy.asked.length
  const config = {
    ...{ app_id: '4711', private_key: fake.privateKey, owner: 'acme', ca },
    ...{ base_url: `${fake.url}/api/v3`, local: true },
  }
  await world.app.newBackend({ type: 'github', name: 'gh', config })
  await expectScopes()
  // Never to github.com.
  expect(proxy.asked.length).toBe(before)
})
