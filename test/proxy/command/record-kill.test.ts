import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { spawnCli } from '../../cli/support.ts'
import { eventually } from '../../support/app.ts'
import type { Reply } from '../../support/server-process.ts'
import { openProcessWorld, type ProcessWorld } from './process-world.ts'
import { environment } from './world.ts'

const LOOPS = 4

let world: ProcessWorld
beforeAll(async () => {
  world = await openProcessWorld()
})
afterAll(() => world?.close())

interface Line {
  readonly path: string
  readonly status: number
}

/** All of them, over its pages. */
async function recorded(run: string): Promise<Line[]> {
  const lines: Line[] = []
  for (let next: string | undefined = `/v1/admin/runs/${run}/requests?limit=200`; next !== undefined; ) {
    const reply: Reply<Line[]> = await world.world.server().call<Line[]>(undefined, 'GET', next)
    expect(reply.status).toBe(200)
    lines.push(...reply.body)
    next = /<([^>]+)>; rel="next"/.exec(reply.headers.get('link') ?? '')?.[1]
  }
  return lines
}

/** In letters: a path with digits might be taken for an id. */
const pathOf = (n: number) =>
  `/v1/call-${n.toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)] ?? '')}`

async function start(name: string) {
  const { name: agent, env } = await world.newRunner()
  const file = join(world.home, `${name}.env`)
  const proxy = spawnCli(['proxy', '--backend', 'gateway', '--write-env', file], { env, cwd: world.home })
  await proxy.said('ready')
  const values = await environment(file)
  const [run] = await world.call<{ id: string }[]>('GET', `/v1/admin/runs?agent=${agent}`)
  if (run === undefined) throw new Error('there is no run')
  return {
    env,
    proxy,
    run: run.id,
    url: values.get('MAYFLY_URL_GATEWAY_API'),
    token: values.get('GATEWAY_TOKEN'),
  }
}

interface Load {
  /** When each request that was answered had ended, in ms, by its path. */
  readonly ended: ReadonlyMap<string, number>
  stop(): Promise<void>
}

/** Several requests at any time, until it is stopped or one fails. */
function load({ url, token }: { url: string | undefined; token: string | undefined }): Load {
  const ended = new Map<string, number>()
  const over = new AbortController()
  let count = 0
  const loops = Array.from({ length: LOOPS }, async () => {
    while (!over.signal.aborted) {
      const path = pathOf(count)
      count += 1
      const reply = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } })
      await reply.text()
      expect(reply.status).toBe(200)
      ended.set(path, performance.now())
      await sleep(5)
    }
  })
  const all = Promise.allSettled(loops)
  return {
    ended,
    stop: async () => {
      over.abort()
      await all
    },
  }
}

describe('what was done is on the server', { timeout: 120_000 }, () => {
  test('a second before the proxy is killed', async () => {
    let { missing, lost } = await killProxy()
    // A machine that stood still in that second has another.
    for (let tries = 1; tries < 3 && (missing.length > 0 || lost === 0); tries += 1)
      ({ missing, lost } = await killProxy())
    expect(missing).toEqual([])
    // So that this can fail: what had just ended was still with the proxy.
    expect(lost).toBeGreaterThan(0)
  })

  /** What had ended a second before the kill and is not on the server, and how much was lost of all. */
  async function killProxy(): Promise<{ missing: string[]; lost: number }> {
    const { proxy, run, ...way } = await start('killed')
    const { ended, stop } = load(way)
    await eventually(async () => expect((await recorded(run)).length).toBeGreaterThan(100))
    await sleep(1_500)
    const killedAt = performance.now()
    proxy.child.kill('SIGKILL')
    expect(await proxy.ended).toMatchObject({ signal: 'SIGKILL' })
    await stop()
    const paths = (await recorded(run)).map(({ path }) => path)
    const wanted = [...ended].filter(([, at]) => at < killedAt - 1_000).map(([path]) => path)
    expect(wanted.length).toBeGreaterThan(100)
    const lost = [...ended].filter(([path]) => !paths.includes(path)).map(([, at]) => killedAt - at)
    console.info(
      `${ended.size} requests, ${paths.length} recorded; the oldest that was lost ended ${Math.max(0, ...lost).toFixed(0)} ms before the kill`,
    )
    // None twice.
    expect(new Set(paths).size).toBe(paths.length)
    return { missing: wanted.filter((path) => !paths.includes(path)), lost: lost.length }
  }

  test('once it has answered a batch, though it is killed then', async () => {
    const { env, proxy, run } = await start('answered')
    const line = {
      ...{ at: new Date().toISOString(), protocol: 'http', method: 'GET', authority: 'api.test' },
      ...{ path: '/v1/one', status: 200, bytes_sent: 1, bytes_received: 2, duration_ms: 3 },
      ...{ decision: 'injected', reason: null, backend: 'gateway', credential_id: null },
      ...{ placeholder: null, redacted: 0 },
    }
    const requests = ['one', 'two', 'three'].map((name) => ({ ...line, path: `/v1/${name}` }))
    const body = { batch: '0123456789abcdefghjkmnpqrs', requests }
    const { status } = await world.world
      .server()
      .call(env['MAYFLY_TOKEN'], 'POST', `/v1/runs/${run}/requests`, body)
    expect(status).toBe(204)
    await world.world.server().kill()
    await world.world.start()
    expect((await recorded(run)).map(({ path }) => path).sort()).toEqual(['/v1/one', '/v1/three', '/v1/two'])
    proxy.child.kill('SIGTERM')
    await proxy.ended
  })

  test('once each, where the server is killed under load and started again', async () => {
    const { proxy, run, ...way } = await start('restarted')
    const { ended, stop } = load(way)
    await eventually(async () => expect((await recorded(run)).length).toBeGreaterThan(100))
    const before = await recorded(run)
    await world.world.server().kill()
    await world.world.start()
    const after = new Set((await recorded(run)).map(({ path }) => path))
    expect(before.filter(({ path }) => !after.has(path))).toEqual([])
    const then = ended.size
    await eventually(async () => expect(ended.size).toBeGreaterThan(then + 50))
    await stop()
    // Also what waited while the server was away, and what it took without having answered.
    const paths = await eventually(async () => {
      const all = (await recorded(run)).map(({ path }) => path)
      expect(all).toEqual(expect.arrayContaining([...ended.keys()]))
      return all
    })
    expect(new Set(paths).size).toBe(paths.length)
    proxy.child.kill('SIGTERM')
    expect((await proxy.ended).code).toBe(0)
  })
})
