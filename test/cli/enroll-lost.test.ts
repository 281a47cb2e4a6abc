import { execFileSync } from 'node:child_process'
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { hasPrograms } from '../support/needed-programs.ts'
import {
  decide,
  type LossyProxy,
  type Moment,
  POLICY_YAML,
  pendingOf,
  privateFiles,
  startLossyProxy,
} from './enroll-support.ts'
import { newHome, runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
let proxy: LossyProxy
let home: { home: string; env: Record<string, string> }
let count = 0
beforeAll(async () => {
  world = await startWorld({ yaml: POLICY_YAML })
})
afterAll(() => world.close())
beforeEach(async () => {
  proxy = await startLossyProxy(world.url)
  home = await newHome()
  Object.assign(home.env, { MAYFLY_SERVER: proxy.url })
  count += 1
})
afterEach(async () => {
  await proxy.close()
  for (const { id } of await pendingOf(world.app)) await decide(world.app, id, 'reject')
  await rm(home.home, { recursive: true })
})

/** The proxy is not the issuer. */
const ISSUER = () => ['--issuer', world.url]
const enroll = (...argv: string[]) => runCli(['enroll', ...ISSUER(), ...argv], { env: home.env })
const files = () => privateFiles(join(home.home, 'config'))

async function agentsNamed(name: string): Promise<unknown[]> {
  const { body } = await world.app.admin('GET', '/v1/admin/agents?limit=1000')
  return body.filter((agent: { name: string }) => agent.name === name)
}

/** One agent, one enrollment, and a login that works; nothing half-written. */
async function expectWhole(name: string): Promise<void> {
  expect(await agentsNamed(name)).toHaveLength(1)
  expect(await pendingOf(world.app)).toEqual([])
  const who = await runCli(['status', '--json'], { env: home.env })
  expect([who.code, JSON.parse(who.stdout).name]).toEqual([0, name])
  const names = Object.keys(await files()).map((path) => path.slice(home.home.length))
  expect(names.sort()).toEqual([
    '/config/mayfly/config.json',
    '/config/mayfly/config.json.lock',
    '/config/mayfly/secrets/default.enrollment.lock',
    '/config/mayfly/secrets/default.login.json',
  ])
}

const SUBMIT = /^POST \/v1\/enroll$/
const DISCOVER = /openid-configuration$/
const LOOK = /\/status$/
const MOMENTS: [string, RegExp, Moment][] = [
  ['the request for it', SUBMIT, 'request'],
  ['the reply to it', SUBMIT, 'reply'],
  ['the request for the issuer', DISCOVER, 'request'],
  ['the reply with the issuer', DISCOVER, 'reply'],
  ['the request for the answer', LOOK, 'request'],
  ['the reply with the answer', LOOK, 'reply'],
]

describe.each(MOMENTS)('%s is lost', (_, form, moment) => {
  test('and the command carries on', async () => {
    const lost = proxy.lose(form, moment)
    const name = `ci-lost-${count}`
    const end = await enroll('--name', name)
    await lost
    expect(end.code).toBe(0)
    await expectWhole(name)
  })

  test('and the command is killed: the next one continues', async () => {
    const lost = proxy.lose(form, moment, 'hang')
    const name = `ci-killed-${count}`
    const { child, ended } = spawnCli(['enroll', ...ISSUER(), '--name', name], { env: home.env })
    await lost
    child.kill('SIGKILL')
    expect((await ended).signal).toBe('SIGKILL')
    expect((await enroll()).code).toBe(0)
    await expectWhole(name)
  })
})

test('shows the administrator one request, however often its reply is lost', async () => {
  for (let round = 0; round < 3; round += 1) {
    const lost = proxy.lose(SUBMIT, 'reply', 'hang')
    const { child, ended } = spawnCli(['enroll', ...ISSUER(), '--name', 'once', '--scope', 'demo'], {
      env: home.env,
    })
    await lost
    child.kill('SIGKILL')
    await ended
  }
  const [pending, ...more] = await pendingOf(world.app)
  expect([pending?.name, more]).toEqual(['once', []])
  await decide(world.app, pending?.id ?? '', 'approve')
  expect((await enroll('--name', 'once', '--scope', 'demo')).code).toBe(0)
  await expectWhole('once')
})

test('waits for a server that goes away', async () => {
  const { said, ended } = spawnCli(['enroll', ...ISSUER(), '--name', 'patient'], { env: home.env })
  await said('to approve, run')
  proxy.setAway(true)
  await said(/Cannot reach http:\S+: .*\. Still waiting\.\n/)
  const [pending] = await pendingOf(world.app)
  await decide(world.app, pending?.id ?? '', 'approve')
  proxy.setAway(false)
  expect((await ended).code).toBe(0)
  await expectWhole('patient')
})

test('continues after being killed between storing the login and dropping the enrollment', async () => {
  const name = `ci-late-${count}`
  await enroll('--name', name, '--no-wait')
  const lost = proxy.lose(LOOK, 'reply', 'hang')
  await rm(join(home.home, 'config'), { recursive: true })
  const { child, ended } = spawnCli(['enroll', ...ISSUER(), '--name', `${name}-b`], { env: home.env })
  await lost
  child.kill('SIGKILL')
  await ended
  const kept = join(home.home, 'config/mayfly/secrets/default.enrollment.json')
  await copyFile(kept, join(home.home, 'kept'))
  await enroll()
  await copyFile(join(home.home, 'kept'), kept)
  const end = await enroll()
  expect([end.code, end.stderr]).toEqual([0, `Already enrolled as the agent ${name}-b.\n`])
  await expectWhole(`${name}-b`)
})

describe.skipIf(!hasPrograms('cc'))('a full disk', () => {
  let library: string
  let control: string
  beforeAll(() => {
    library = join(world.home, 'fault-disk.so')
    const source = fileURLToPath(new URL('../support/fault-disk.c', import.meta.url))
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'])
  })
  beforeEach(() => {
    control = join(home.home, 'fault')
    Object.assign(home.env, {
      LD_PRELOAD: library,
      FAULT_DIRECTORY: `${home.home}/config/`,
      FAULT_CONTROL: control,
    })
  })

  test('at the start: sends nothing and leaves nothing', async () => {
    await mkdir(dirname(control), { recursive: true })
    await writeFile(control, 'cap 0')
    const end = await spawnCli(['enroll', ...ISSUER(), '--name', 'ci-full'], { env: home.env }).ended
    expect([end.code, end.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^mayfly: \S+default\.enrollment\.lock cannot be written: the disk is full\. [^\n]+\n$/,
      ),
    ])
    expect(proxy.passed).toEqual([])
    expect(await files()).toEqual({ [`${home.home}/config/mayfly/secrets/default.enrollment.lock`]: '' })
  })

  test('when the answer arrives: says what to do, and the command can be repeated', async () => {
    const { said, ended } = spawnCli(['enroll', ...ISSUER(), '--name', 'full'], { env: home.env })
    await said('to approve, run')
    await writeFile(control, 'cap 0')
    const [pending] = await pendingOf(world.app)
    await decide(world.app, pending?.id ?? '', 'approve')
    const end = await ended
    expect([end.code, end.stderr.split('\n').at(-2)]).toEqual([
      1,
      expect.stringMatching(
        /^mayfly: The enrollment is approved, but \S+ cannot be written: the disk is full\. .*again within ten minutes: nothing is lost\.$/,
      ),
    ])
    await rm(control)
    expect((await enroll()).code).toBe(0)
    await expectWhole('full')
  })
})
