import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/app.ts'
import { COMPILE_CACHE } from '../support/compile-cache.ts'
import { gone, newRunner, openTerminal, recordsOf } from './run-support.ts'
import { MAIN, spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const revoked = { status: 'revoked', actions: ['credential.revoked', 'credential.issued'] }
const RUN = ['run', '--backend', 'demo', '--file', 'TOKEN_FILE=demo', '--']

/** Waits until the script prints `ready PID`, the pid of its shell. */
async function started(script: string, argv: readonly string[] = RUN) {
  const { agent, env } = await newRunner(world)
  const run = spawnCli([...argv, 'sh', '-c', script], { env })
  const said = await run.said(/ready \d+/, 'stdout')
  return { agent, run, pid: Number(/ready (\d+)/.exec(said)?.[1]) }
}

describe('mayfly run revokes its credentials', () => {
  test('when the command succeeds', async () => {
    const { agent, env } = await newRunner(world)
    const run = spawnCli([...RUN, 'sh', '-c', 'test -s "$TOKEN_FILE" && test -n "$DEMO_TOKEN"'], { env })
    expect(await run.ended).toEqual({ code: 0, signal: null, stdout: '', stderr: '' })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('when the command fails, with its exit code', async () => {
    const { agent, env } = await newRunner(world)
    expect(await spawnCli([...RUN, 'sh', '-c', 'exit 42'], { env }).ended).toMatchObject({ code: 42 })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('when the command crashes', async () => {
    const { agent, env } = await newRunner(world)
    const run = spawnCli([...RUN, 'sh', '-c', 'ulimit -c 0; kill -SEGV $$'], { env })
    expect(await run.ended).toMatchObject({ code: 139, stderr: '' })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('when the command is killed', async () => {
    const { agent, run, pid } = await started('echo ready $$; while :; do sleep 0.05; done')
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'active' }])
    process.kill(pid, 'SIGKILL')
    expect(await run.ended).toMatchObject({ code: 137, stderr: '' })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
    ['SIGUSR1', 138],
    ['SIGUSR2', 140],
  ] as const)('at %s, which it forwards to the command', async (signal, code) => {
    const { agent, run } = await started('ulimit -c 0; echo ready $$; while :; do sleep 0.05; done')
    run.child.kill(signal)
    expect(await run.ended).toMatchObject({ code, signal: null, stderr: '' })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('at SIGHUP even under nohup, because Node hides that a signal was ignored at the start', async () => {
    const { agent, env } = await newRunner(world)
    const argv = [...RUN, 'sh', '-c', 'echo ready; while :; do sleep 0.05; done']
    const run = spawnCli(argv, { env, by: ['nohup'] })
    await run.said('ready', 'stdout')
    run.child.kill('SIGHUP')
    expect(await run.ended).toMatchObject({ code: 129, signal: null })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('not when the terminal is lost, if it runs in a session of its own', async () => {
    const { agent, env } = await newRunner(world)
    const script = 'echo ready $$; until [ -e end ]; do sleep 0.05; done; echo went on'
    await writeFile(join(world.home, 'job'), script)
    const line = `setsid -f '${process.execPath}' '${MAIN}' ${RUN.join(' ')} sh job >log 2>&1 </dev/null`
    const log = () => readFile(join(world.home, 'log'), 'utf8')
    const shell = { env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env, SHELL: '/bin/sh' }, cwd: world.home }
    const terminal = spawn('script', ['-qfc', `${line}; sleep 600`, '/dev/null'], shell)
    await eventually(async () => expect(await log()).toMatch(/^ready \d+$/m))
    terminal.kill('SIGKILL')
    await once(terminal, 'close')
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'active' }])
    await writeFile(join(world.home, 'end'), '')
    await eventually(async () => expect(await log()).toMatch(/^went on$/m))
    await eventually(async () => expect(await recordsOf(world, agent)).toMatchObject([revoked]))
  })

  test('at SIGTERM that the command handles, with its exit code', async () => {
    const { agent, run } = await started(
      'trap "echo bye; exit 7" TERM; echo ready $$; while :; do sleep 0.05; done',
    )
    run.child.kill('SIGTERM')
    expect(await run.ended).toMatchObject({ code: 7, stdout: expect.stringContaining('bye') })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('at SIGTERM that the command ignores, after the grace period', async () => {
    const argv = ['run', '--backend', 'demo', '--grace', '150ms', '--']
    const { agent, run } = await started('trap "" TERM; echo ready $$; while :; do sleep 0.05; done', argv)
    run.child.kill('SIGTERM')
    expect(await run.ended).toMatchObject({
      code: 137,
      stderr: 'mayfly: the command did not exit within 0.15 s and was killed.\n',
    })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('when the terminal is lost', async () => {
    const { agent, env } = await newRunner(world)
    const terminal = await openTerminal(
      [...RUN, 'sh', '-c', 'echo ready $$; while :; do sleep 0.05; done'],
      env,
    )
    const said = await terminal.said(/ready \d+/)
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'active' }])
    terminal.hangUp()
    await gone(Number(/ready (\d+)/.exec(said)?.[1]))
    await gone(terminal.pid)
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('when the terminal is lost and the command ignores it', async () => {
    const { agent, env } = await newRunner(world)
    const script = 'trap "" HUP; echo ready $$; while :; do sleep 0.05; done'
    const terminal = await openTerminal(
      ['run', '--backend', 'demo', '--grace', '150ms', '--', 'sh', '-c', script],
      env,
    )
    const said = await terminal.said(/ready \d+/)
    terminal.hangUp()
    await gone(Number(/ready (\d+)/.exec(said)?.[1]))
    await gone(terminal.pid)
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('not at a SIGHUP while the terminal still exists', async () => {
    const { agent, env } = await newRunner(world)
    const script =
      'trap "echo reloaded" HUP; echo ready; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.05; done; echo "went on"'
    const argv = ['run', '--backend', 'demo', '--grace', '100ms', '--', 'sh', '-c', script]
    const terminal = await openTerminal(argv, env)
    await terminal.said(/^ready/m)
    process.kill(terminal.pid, 'SIGHUP')
    await terminal.said(/reloaded[\s\S]*went on/)
    await gone(terminal.pid)
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })

  test('and delivers Ctrl-C at the terminal to the command once', async () => {
    const { agent, env } = await newRunner(world)
    const script = `
      process.on('SIGINT', () => console.log('got it')).on('SIGUSR1', () => console.log('still here'))
      process.on('SIGUSR2', () => process.exit(9))
      setInterval(() => {}, 1e6)
      console.log('ready')`
    const terminal = await openTerminal([...RUN, process.execPath, '-e', script], env)
    await terminal.said(/^ready/m)
    terminal.type('\x03')
    await terminal.said(/got it/)
    // mayfly handles signals in order, so it has handled the Ctrl-C when it forwards this one.
    process.kill(terminal.pid, 'SIGUSR1')
    await terminal.said(/still here/)
    process.kill(terminal.pid, 'SIGUSR2')
    await gone(terminal.pid)
    expect(terminal.text().match(/got it/g)).toEqual(['got it'])
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })
})
