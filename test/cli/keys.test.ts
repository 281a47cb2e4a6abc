import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasPrograms } from '../support/needed-programs.ts'
import { runCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })

test.skipIf(!hasPrograms('gpg'))('keys ls: a real gpg imports what --armor prints', async () => {
  await world.app.newAgent({ name: 'other' })
  const { stdout } = await mayfly('keys', 'ls', '--armor')
  const home = await mkdtemp(join(tmpdir(), 'mayfly-gpg-'))
  try {
    const gpg = (args: string[], input = '') =>
      spawnSync('gpg', ['--homedir', home, '--batch', '--no-tty', ...args], { input, encoding: 'utf8' })
    expect(gpg(['--import'], stdout).status).toBe(0)
    const listed = gpg(['--list-keys', '--with-colons']).stdout
    for (const key of JSON.parse((await mayfly('keys', 'ls', '--json')).stdout))
      expect(listed).toContain(key.key_id)
    expect(listed.match(/^pub:/gm)).toHaveLength(2)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
})

test('keys ls of one agent', async () => {
  const { stdout } = await mayfly('keys', 'ls', '--agent', world.agent.name)
  expect(stdout.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^KEY/),
    expect.stringContaining(world.agent.signing_email),
  ])
  expect((await mayfly('keys', 'ls', '--agent', 'nobody')).code).toBe(1)
})

test('rotate with grace keeps tokens alive, without it ends them', async () => {
  const token = await world.app.accessToken(world.agent)
  const works = async () => (await world.app.as(token).get('/v1/status')).status
  const graceful = await mayfly('keys', 'rotate', '--grace', '1h', '--json')
  expect(JSON.parse(graceful.stdout).previous_valid_until).toMatch(/Z$/)
  expect(await works()).toBe(200)
  expect((await mayfly('keys', 'rotate')).stderr).toMatch(/--grace DURATION, or --yes/)
  expect(
    (await runTyping(['keys', 'rotate'], env, [['Invalidate all access tokens now? [y/N] ', 'n']])).code,
  ).toBe(1)
  expect(await works()).toBe(200)
  expect((await mayfly('keys', 'rotate', '--yes')).stdout).toMatch(/no longer valid\.\n$/)
  expect(await works()).toBe(401)
  expect((await mayfly('keys', 'rotate', '--grace', 'soon')).code).toBe(2)
})

test('without the scope, names it', async () => {
  expect(await runCli(['keys', 'ls'], { env: world.env })).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('admin:keys:read'),
  })
  expect(await runCli(['keys', 'rotate', '--yes'], { env: world.env })).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('admin:keys:write'),
  })
})
