import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gone } from '../../cli/run-support.ts'
import { eventually } from '../../support/app.ts'
import { type Loaded, loadedRun, openProcessWorld, type ProcessWorld, sessions } from './process-world.ts'

const INTERVAL_MS = 1_000
/** Four intervals, and as long as the sweeper and a busy machine take. What is open would last for ten minutes. */
const DEAD_MS = 4 * INTERVAL_MS + 12_000

let world: ProcessWorld
beforeAll(async () => {
  world = await openProcessWorld()
})
afterAll(() => world?.close())

/** It may have ended by itself. */
function clear(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}

async function nothingLeft({ command, proxy }: Loaded): Promise<void> {
  await eventually(async () => expect(world.plain.streams()).toBe(0), DEAD_MS)
  await eventually(async () => expect(await sessions(world)).toBe(0), DEAD_MS)
  await gone(proxy)
  await gone(command.child.pid ?? 0)
}

/** On the server, too: no credential lives any more. */
async function nothingLives(run: Loaded, reasons: readonly string[]): Promise<void> {
  const end = await eventually(async () => {
    const shown = await run.run()
    expect(shown.state).toBe('ended')
    return shown
  })
  expect(reasons).toContain(end.reason)
  await eventually(async () => {
    const all = await world.call<{ status: string }[]>('GET', `/v1/admin/tokens?agent=${run.agent}`)
    expect(all.map(({ status }) => status)).toEqual(['revoked', 'revoked'])
  })
}

describe('kill -9 under load leaves nothing alive beyond its heartbeat', { timeout: 120_000 }, () => {
  test('of the proxy', async () => {
    const run = await loadedRun(world)
    process.kill(run.proxy, 'SIGKILL')
    expect(await run.command.ended).toMatchObject({ code: 143 })
    await nothingLeft(run)
    await nothingLives(run, ['completed'])
  })

  test('of the command, whose child lives on', async () => {
    const run = await loadedRun(world)
    run.command.child.kill('SIGKILL')
    await nothingLeft(run)
    await nothingLives(run, ['completed'])
    clear(run.child)
  })

  test('of the command and the proxy: the server hears no heartbeat', async () => {
    const run = await loadedRun(world)
    run.command.child.kill('SIGKILL')
    process.kill(run.proxy, 'SIGKILL')
    await nothingLeft(run)
    await nothingLives(run, ['missed_heartbeat', 'completed'])
    clear(run.child)
  })

  test('of the child', async () => {
    const run = await loadedRun(world)
    process.kill(run.child, 'SIGKILL')
    expect(await run.command.ended).toMatchObject({ code: 137 })
    await nothingLeft(run)
    await nothingLives(run, ['completed'])
  })

  test('of the server: what is open is destroyed, and the run ends after its start', async () => {
    const run = await loadedRun(world)
    const lastBeat = Date.parse((await run.run()).last_beat)
    await world.world.server().kill()
    await eventually(
      async () => expect([world.plain.streams(), await sessions(world)]).toEqual([0, 0]),
      DEAD_MS,
    )
    // Three intervals after the last answered beat, by the time at which that was sent.
    expect(Date.now() - lastBeat).toBeGreaterThan(2 * INTERVAL_MS)
    run.command.child.kill('SIGKILL')
    process.kill(run.proxy, 'SIGKILL')
    clear(run.child)
    await world.world.start()
    await nothingLives(run, ['missed_heartbeat'])
  })
})

const STATUS =
  'curl -sS -o /dev/null -w "%{http_code} " -H "Authorization: Bearer $GATEWAY_TOKEN" "$MAYFLY_URL_GATEWAY_API/v1/x"'

test('a frozen server: nothing new is served, then what is open is destroyed, and nothing outlives it', {
  timeout: 120_000,
}, async () => {
  const run = await loadedRun(world, `while read -r line; do ${STATUS}; echo; done`)
  let output = ''
  run.command.child.stdout?.on('data', (text: string) => {
    output += text
  })
  const ask = async (): Promise<string> => {
    const from = output.length
    run.command.child.stdin?.write('\n')
    return eventually(async () => {
      const found = /(\d{3}) \n/.exec(output.slice(from))?.[1]
      if (found === undefined) throw new Error('no answer yet')
      return found
    })
  }
  expect(await ask()).toBe('200')
  const server = world.world.server()
  server.signal('SIGSTOP')
  const frozenAt = performance.now()
  try {
    await eventually(async () => expect(await ask()).toBe('503'), DEAD_MS)
    await eventually(
      async () => expect([world.plain.streams(), await sessions(world)]).toEqual([0, 0]),
      DEAD_MS,
    )
    // Three intervals after the last answered beat. If the heartbeat did not count, 15 s of silence would be waited for.
    expect(performance.now() - frozenAt).toBeLessThan(12_000)
  } finally {
    server.signal('SIGCONT')
  }
  // The server ends it, or lets it live: the proxy follows either.
  await Promise.race([
    run.command.ended,
    eventually(async () => expect(await ask()).toBe('200')).catch(() => undefined),
  ])
  run.command.child.stdin?.end()
  await run.command.ended
  await nothingLeft(run)
  await nothingLives(run, ['missed_heartbeat', 'completed'])
})
