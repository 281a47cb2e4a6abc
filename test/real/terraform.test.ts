import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { installCommands, startToolsWorld, type ToolsWorld } from '../cli/tools-support.ts'
import { makeCertificates } from '../support/certificates.ts'
import { isInstalled, run } from '../support/run-program.ts'

let world: ToolsWorld
let env: Record<string, string>
let host: string
let close: () => void
const seen: string[] = []

/** A registry with one module, for callers with a token of ours. */
async function startModules(directory: string, isAllowed: (token: string) => boolean) {
  const { server: tls } = makeCertificates(directory)
  await writeFile(join(directory, 'main.tf'), 'output "hello" { value = "world" }\n')
  execFileSync('tar', ['-czf', 'module.tar.gz', 'main.tf'], { cwd: directory })
  const archive = readFileSync(join(directory, 'module.tar.gz'))
  const server = createServer(tls, (request, response) => {
    const json = (body: object) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(body))
    }
    if (request.url === '/.well-known/terraform.json') return json({ 'modules.v1': '/v1/modules/' })
    if (request.url === '/module.tar.gz') return response.end(archive)
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    if (!isAllowed(token)) return response.writeHead(401).end()
    seen.push(token)
    if (request.url?.endsWith('/versions')) return json({ modules: [{ versions: [{ version: '1.0.0' }] }] })
    return response
      .writeHead(204, { 'x-terraform-get': `https://${request.headers.host}/module.tar.gz` })
      .end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** There is no package of it in Debian; the protocol itself is in test/cli/tools-terraform.test.ts. */
describe.skipIf(!isInstalled('terraform'))('terraform', () => {
  beforeAll(async () => {
    world = await startToolsWorld()
    await world.add('modules', { secret: 'tf-{id}' })
    const directory = join(world.home, 'modules')
    await mkdir(directory)
    const modules = await startModules(directory, (token) => token.startsWith('tf-cred_'))
    host = modules.host
    close = modules.close
    env = {
      ...(await installCommands(world)),
      SSL_CERT_FILE: join(directory, 'ca.pem'),
      CHECKPOINT_DISABLE: '1',
      TF_IN_AUTOMATION: '1',
    }
  })
  afterAll(async () => {
    close()
    await world.close()
  })

  async function init(name: string) {
    const cwd = join(world.home, name)
    await mkdir(cwd)
    const source = `${host}/tests/hello/none`
    await writeFile(
      join(cwd, 'main.tf'),
      `module "hello" {\n  source  = "${source}"\n  version = "1.0.0"\n}\n`,
    )
    return run(['terraform', 'init', '-no-color'], env, { cwd })
  }

  test('fetches a module with our token after setup, and `terraform logout` revokes it', async () => {
    expect((await init('before')).stderr).toMatch(/401|unauthorized/i)
    const setup = await run(
      ['mayfly', 'helper', 'terraform', '--write', '--host', host, '--backend', 'modules'],
      env,
    )
    expect(setup).toMatchObject({ code: 0, stderr: '' })
    const end = await init('after')
    expect(end).toMatchObject({ code: 0, stderr: '' })
    const [id] = await world.alive('modules')
    expect([...new Set(seen)]).toEqual([`tf-${id}`])
    const logout = await run(['terraform', 'logout', host], env)
    expect(logout).toMatchObject({ code: 0, stderr: '' })
    expect(await world.alive('modules')).toEqual([])
  })
})
