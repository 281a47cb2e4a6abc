import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installCommands, startToolsWorld, type ToolsWorld } from '../cli/tools-support.ts'
import { run } from '../support/run-program.ts'

let world: ToolsWorld
let env: Record<string, string>
let registry: string
const seen: string[] = []
const server = createServer((request, response) => {
  const { authorization = '' } = request.headers
  response.setHeader('content-type', 'application/json')
  if (!authorization.startsWith('Bearer npm-cred_')) {
    response.writeHead(401).end('{}')
    return
  }
  seen.push(authorization)
  const version = { name: 'hello', version: '1.2.3', dist: { tarball: `${registry}hello.tgz` } }
  response.end(
    JSON.stringify({ name: 'hello', 'dist-tags': { latest: '1.2.3' }, versions: { '1.2.3': version } }),
  )
})

beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('packages', { secret: 'npm-{id}' })
  env = await installCommands(world)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const key = registry.replace('http:', '')
  const token = `${key}:_authToken=\${NPM_TOKEN}`
  await writeFile(join(world.home, '.npmrc'), `registry=${registry}\n${token}\nupdate-notifier=false\n`)
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await world.close()
})

test('npm reads the token from the variable that its configuration names', async () => {
  const script = 'NPM_TOKEN=$(mayfly npm-token --backend packages) npm view hello version'
  const end = await run(['sh', '-ec', script], env, { cwd: world.home })
  expect([end.code, end.stdout]).toEqual([0, '1.2.3\n'])
  const [id] = await world.alive('packages')
  expect([...new Set(seen)]).toEqual([`Bearer npm-${id}`])
  const without = await run(['npm', 'view', 'hello', 'version'], env, { cwd: world.home })
  expect(without.code).not.toBe(0)
})
