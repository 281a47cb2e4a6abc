import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gone, newRunner } from '../../cli/run-support.ts'
import { type Spawned, spawnCli } from '../../cli/support.ts'
import { eventually } from '../../support/app.ts'
import { freePort } from '../../support/free-port.ts'
import { cpuMsOf, proxyOf } from './process-world.ts'
import { type ProxyWorld, startProxyWorld } from './world.ts'

let world: ProxyWorld
beforeAll(async () => {
  world = await startProxyWorld()
})
afterAll(() => world?.close())

const WATCHED_MS = 3_000

/** Share of a processor, over a while. */
async function busyShare(pid: number): Promise<number> {
  const before = await cpuMsOf(pid)
  const began = performance.now()
  await sleep(WATCHED_MS)
  const after = await cpuMsOf(pid)
  if (before === undefined || after === undefined) throw new Error('it has gone')
  return (after - before) / (performance.now() - began)
}

async function start(script: string) {
  const { env } = await newRunner(world, ['gateway:*', 'secure:*'])
  const flags = ['--proxy', '--backend', 'gateway', '--backend', 'secure']
  const run = spawnCli(['run', ...flags, '--', 'sh', '-c', script], { env, stdin: 'open' })
  await run.said('ready', 'stdout')
  return { run, proxy: await proxyOf(run.child.pid) }
}

const auth = (name: string) => `-H "Authorization: Bearer $${name}"`
const SECURE = () => `https://127.0.0.1:${world.secure.port}`
/** Everything that a child may do wrong, by both ways in and both versions of HTTP. */
const REFUSED = () =>
  [
    `curl -sS -o /dev/null ${auth('GATEWAY_TOKEN')} "$MAYFLY_URL_GATEWAY_API/v2/x"`,
    `curl -sS -o /dev/null -X DELETE -d x ${auth('GATEWAY_TOKEN')} "$MAYFLY_URL_GATEWAY_API/v1/keys/1"`,
    `curl -sS -o /dev/null --noproxy "" --http1.1 ${auth('GATEWAY_TOKEN')} ${SECURE()}/v1/x`,
    `curl -sS -o /dev/null --noproxy "" --http2 ${auth('SECURE_TOKEN')} ${SECURE()}/v2/x`,
    `curl -sS -o /dev/null --noproxy "" --http2 -m 0.3 ${auth('SECURE_TOKEN')} ${SECURE()}/v1/stream`,
    'curl -sS -o /dev/null --noproxy "" -m 2 https://127.0.0.1:1/',
    'curl -sS -o /dev/null --proxy-user a:b https://example.invalid/',
    'head -c 300000 /dev/urandom | curl -sS -o /dev/null -m 0.2 -T - "$MAYFLY_URL_GATEWAY_API/v2/upload"',
  ]
    .map((line) => `${line} > /dev/null 2>&1`)
    .join('; ')
const TWICE = () => `for round in 1 2 3; do ${REFUSED()}; done; echo ready; `
const HELD = () =>
  `curl -sSN -o /dev/null --noproxy "" --http2 ${auth('SECURE_TOKEN')} ${SECURE()}/v1/stream & curl -sSN -o /dev/null --noproxy "" --http1.1 ${auth('SECURE_TOKEN')} ${SECURE()}/v1/stream & sleep 0.5; `

describe('after refused requests', { timeout: 120_000 }, () => {
  test('a proxy with nothing to do does nothing', async () => {
    const { run, proxy } = await start(`${TWICE()}exec cat`)
    // Heartbeats take some percent of a slow machine; a socket that is left open without a word takes all of it.
    expect(await busyShare(proxy)).toBeLessThan(0.2)
    run.child.stdin?.end()
    expect(await run.ended).toMatchObject({ code: 0 })
    await gone(proxy)
  })

  const ENDS: Readonly<Record<string, (run: Spawned, proxy: number) => unknown>> = {
    'the command ends': ({ child }) => child.stdin?.end(),
    'SIGKILL of `mayfly run`': ({ child }) => child.kill('SIGKILL'),
    'SIGTERM of `mayfly run`': ({ child }) => child.kill('SIGTERM'),
    'its output is closed': ({ child }) => {
      child.stdout?.destroy()
      child.stderr?.destroy()
      child.stdin?.end()
    },
  }
  test.each(Object.keys(ENDS))('with streams open it ends: %s', async (how) => {
    const { run, proxy } = await start(`${HELD()}${TWICE()}exec cat`)
    await ENDS[how]?.(run, proxy)
    await eventually(async () => expect(await cpuMsOf(proxy)).toBeUndefined())
  })
})

test('without a server nothing starts, and nothing stays', async () => {
  const { env } = await newRunner(world, ['gateway:*'])
  const away = { ...env, MAYFLY_SERVER: `http://127.0.0.1:${await freePort()}` }
  for (const argv of [
    ['run', '--proxy', '--backend', 'gateway', '--', 'true'],
    ['proxy', '--backend', 'gateway'],
  ]) {
    const end = await spawnCli(argv, { env: away }).ended
    expect(end.code).toBe(3)
  }
})
