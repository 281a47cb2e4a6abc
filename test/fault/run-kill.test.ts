import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { gone, newRunner, openGate, recordsOf, signalled } from '../cli/run-support.ts'
import { spawnCli, startWorld, type World } from '../cli/support.ts'
import { eventually } from '../support/app.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({ jobs: true })
})
afterAll(() => world.close())

const CHILD = ['sh', '-c', 'echo "ready $$ $TOKEN_FILE"; while :; do sleep 0.05; done']
const ARGV = ['--backend', 'demo', '--file', 'TOKEN_FILE=demo']

async function killed(argv: readonly string[]) {
  const { agent, env } = await newRunner(world)
  const run = spawnCli(['run', ...argv, '--', ...CHILD], { env })
  const [, child, path = ''] = /ready (\d+) (\S+)/.exec(await run.said(/ready .*\n/, 'stdout')) ?? []
  expect(await recordsOf(world, agent)).toMatchObject([{ status: 'active' }])
  run.child.kill('SIGKILL')
  await gone(run.child.pid ?? 0)
  return { agent, child: Number(child), directory: dirname(dirname(path)) }
}

/** Pids of the guards that log in with this token. */
async function guards(token: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [command, environment] = await Promise.all(
        ['cmdline', 'environ'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      )
      return command?.includes('\0run-guard') === true && environment?.includes(token) === true ? [pid] : []
    }),
  )
  return found.flat()
}

test('the guard of a killed run revokes its credentials and removes its files', async () => {
  const { agent, child, directory } = await killed([...ARGV, '--guard'])
  await eventually(async () => {
    expect(await recordsOf(world, agent)).toMatchObject([
      { status: 'revoked', actions: ['credential.revoked', 'credential.issued'] },
    ])
  })
  await expect(stat(directory)).rejects.toThrow('ENOENT')
  // The command keeps running, without credentials.
  process.kill(child, 'SIGKILL')
  await eventually(async () => expect(await guards(agent.token)).toEqual([]))
})

/** A guarded run whose request was carried out, and whose reply is on its way. */
async function asking() {
  const { agent, env } = await newRunner(world)
  const gate = await openGate(world.url)
  onTestFinished(() => gate.close())
  gate.on('POST', 'hold')
  const run = spawnCli(['run', '--guard', '--backend', 'demo', '--', 'echo', 'it ran'], {
    env: { ...env, MAYFLY_SERVER: gate.url },
  })
  onTestFinished(() => void run.child.kill('SIGKILL'))
  await gate.held('POST')
  expect(await recordsOf(world, agent)).toMatchObject([{ status: 'active' }])
  return { agent, gate, run }
}

test('the guard of a run that was killed before it read the reply revokes what was issued', async () => {
  const { agent, gate, run } = await asking()
  gate.on('POST', 'pass')
  run.child.kill('SIGKILL')
  expect(await run.ended).toMatchObject({ signal: 'SIGKILL', stdout: '' })
  await eventually(async () => {
    expect(await recordsOf(world, agent)).toMatchObject([
      { status: 'revoked', actions: ['credential.revoked', 'credential.repeated', 'credential.issued'] },
    ])
  })
  await eventually(async () => expect(await guards(agent.token)).toEqual([]))
})

test('the guard goes on asking while the server is away, and revokes what was issued', async () => {
  const { agent, gate, run } = await asking()
  gate.on('POST', 'drop')
  run.child.kill('SIGKILL')
  await gate.dropped('POST')
  expect(await recordsOf(world, agent)).toMatchObject([{ status: 'active' }])
  gate.on('POST', 'pass')
  await eventually(async () => {
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
  }, 25_000)
  await eventually(async () => expect(await guards(agent.token)).toEqual([]))
})

test('the guard of a run that ended normally exits and revokes nothing', async () => {
  const { agent, env } = await newRunner(world)
  const run = spawnCli(['run', '--guard', ...ARGV, '--', 'sh', '-c', 'echo ready; cat'], {
    env,
    stdin: 'open',
  })
  await run.said('ready', 'stdout')
  await eventually(async () => expect(await guards(agent.token)).toHaveLength(1))
  run.child.stdin?.end()
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' })
  await eventually(async () => expect(await guards(agent.token)).toEqual([]))
  const [record] = await recordsOf(world, agent)
  expect(record?.actions).toEqual(['credential.revoked', 'credential.issued'])
})

test('a run that cannot revoke exits, and its guard keeps trying', async () => {
  const { agent, env } = await newRunner(world)
  const gate = await openGate(world.url)
  onTestFinished(() => gate.close())
  gate.on('DELETE', 'drop')
  gate.on('DELETE run', 'drop')
  const run = spawnCli(['run', '--guard', '--backend', 'demo', '--', 'true'], {
    env: { ...env, MAYFLY_SERVER: gate.url },
  })
  onTestFinished(() => void run.child.kill('SIGKILL'))
  await gate.dropped('DELETE run')
  // The second signal makes the run give up; its guard then takes over.
  run.child.kill('SIGTERM')
  await signalled(run.child.pid ?? 0)
  run.child.kill('SIGTERM')
  expect(await run.ended).toMatchObject({ code: 1, stderr: expect.stringMatching(/could not be revoked/) })
  expect(await recordsOf(world, agent)).toMatchObject([{ status: 'active' }])
  gate.release('DELETE')
  gate.release('DELETE run')
  await eventually(async () => {
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
  }, 25_000)
  await eventually(async () => expect(await guards(agent.token)).toEqual([]))
})

test('without a guard and a run the credentials of a killed command expire', async () => {
  const { agent, child, directory } = await killed(['--no-run', ...ARGV])
  process.kill(child, 'SIGKILL')
  await rm(directory, { recursive: true })
  // The backend's default lifetime is ten minutes.
  world.app.advance(11 * 60_000)
  await eventually(async () => {
    expect(await recordsOf(world, agent)).toMatchObject([
      { status: 'expired', actions: ['credential.expired', 'credential.issued'] },
    ])
  })
})
