import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { listenAs, NOBODY } from '../support/listener-as.ts'
import { openProxied, PLACEHOLDER as PASSWORD } from '../support/proxied-database.ts'
import { run } from '../support/run-program.ts'
import { ask } from './traffic-clients.ts'
import { heldFake, httpUse, listening, PLACEHOLDER, SECRET, trafficWorld } from './traffic-world.ts'

const isRoot = process.platform === 'linux' && process.getuid?.() === 0
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok'
/** Under a user of its own, as that of the child would be: it took the port that the upstream had. */
const impostor = () => listenAs(NOBODY, { answer: OK })

async function site(port: number, accounts?: readonly string[]) {
  const use = httpUse(`http://127.0.0.1:${port}`, accounts && { accounts })
  const held = heldFake('api', [use])
  const world = trafficWorld([held])
  onTestFinished(() => world.close())
  const { url } = await world.traffic.openSite(held, use)
  return { world, at: Number(new URL(url).port) }
}

const bearer = { authorization: `Bearer ${PLACEHOLDER}` }

test.runIf(isRoot)('a local upstream whose port another account has gets nothing', async () => {
  await using listener = await impostor()
  const { world, at } = await site(listener.port)
  for (const headers of [bearer, {}]) {
    const reply = await ask({ port: at, path: '/v1', headers })
    expect([reply.status, reply.body]).toEqual([502, expect.stringContaining('foreign_listener')])
  }
  await listener.settled()
  expect(listener.received()).toBe('')
  await expect
    .poll(() => world.lines.map(({ reason }) => reason))
    .toEqual(['foreign_listener', 'foreign_listener'])
})

test.runIf(isRoot)('one under an account that the use names gets its secret', async () => {
  await using listener = await impostor()
  const { at } = await site(listener.port, ['nobody'])
  expect((await ask({ port: at, path: '/v1', headers: bearer })).status).toBe(200)
  expect(listener.received()).toContain(SECRET)
})

test('so does one of our own', async () => {
  const upstream = createServer((_request, response) => response.end('fine'))
  onTestFinished(() => void upstream.close())
  const { at } = await site(await listening(upstream))
  expect((await ask({ port: at, path: '/v1', headers: bearer })).status).toBe(200)
})

test.runIf(isRoot)('a database gives its password to named accounts only', async () => {
  await using listener = await listenAs(NOBODY, { answer: '+OK\r\n' })
  const password = 'the-password-of-the-role'
  const account = { username: 'mf_orders', password, database: '0' }
  const open = (accounts: readonly string[]) =>
    openProxied({ account, use: { protocol: 'redis', port: listener.port, accounts } })
  const ping = ({ tcpPort }: { tcpPort: number }) =>
    run(['redis-cli', '-u', `redis://a:${PASSWORD}@127.0.0.1:${tcpPort}/0`, 'PING'], {
      PATH: String(process.env['PATH']),
    })
  await using strict = await open(['redis'])
  const line = strict.nextLine('refused')
  await ping(strict)
  expect((await line).reason).toBe('upstream_unreachable')
  await listener.settled()
  expect(listener.received()).toBe('')
  await using named = await open(['redis', String(NOBODY)])
  await ping(named)
  expect(listener.received()).toContain(password)
})
