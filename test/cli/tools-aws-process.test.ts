import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectNoSecret, runCli } from './support.ts'
import { AWS_FIELDS, startToolsWorld, type ToolsWorld } from './tools-support.ts'

let world: ToolsWorld
beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('cloud', { fields: AWS_FIELDS })
})
afterAll(() => world.close())

const HOUR_MS = 3_600_000
const FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/

describe('aws credential-process', () => {
  test('prints what an SDK reads, and keeps it in a file for this user alone', async () => {
    const end = await runCli(['aws', 'credential-process', '--backend', 'cloud'], world)
    expect([end.code, end.stderr]).toEqual([0, ''])
    const answer = JSON.parse(end.stdout)
    const [id] = await world.alive('cloud')
    expect(answer).toEqual({
      Version: 1,
      AccessKeyId: `ASIA-${id}`,
      SecretAccessKey: `secret/of+${id}`,
      SessionToken: `session==${id}`,
      Expiration: expect.stringMatching(FORM),
    })
    expect(Date.parse(answer.Expiration)).toBeLessThanOrEqual(Date.now() + HOUR_MS)
    const directory = join(world.home, 'cache', 'mayfly', 'credentials')
    const [file] = await readdir(directory)
    expect((await stat(join(directory, String(file)))).mode & 0o777).toBe(0o600)
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
  })

  test('answers the same again, another one before its end, and at once when it was revoked', async () => {
    const ask = async (ahead = 0) => {
      const end = await runCli(['aws', 'credential-process', '--backend', 'cloud'], { ...world, ahead })
      expect([end.code, end.stderr]).toEqual([0, ''])
      return JSON.parse(end.stdout).AccessKeyId as string
    }
    const first = await ask()
    expect(await ask()).toBe(first)
    expect(await ask(0.7 * HOUR_MS)).toBe(first)
    const second = await ask(0.8 * HOUR_MS)
    expect(second).not.toBe(first)
    expect(await ask()).toBe(second)
    await world.agent.client.delete(`/api/v1/credentials/${second.slice('ASIA-'.length)}`)
    expect(await ask()).not.toBe(second)
  })

  test('other requests have other credentials', async () => {
    const base = ['aws', 'credential-process', '--backend', 'cloud']
    const ends = [await runCli(base, world), await runCli([...base, '--scope', 'read'], world)]
    expect(ends[0]?.stdout).not.toBe(ends[1]?.stdout)
  })

  test('says the end of the upstream where that is sooner', async () => {
    await world.add('early', { fields: AWS_FIELDS, early: 1800 })
    const { stdout } = await runCli(['aws', 'credential-process', '--backend', 'early'], world)
    const left = Date.parse(JSON.parse(stdout).Expiration) - Date.now()
    expect(left).toBeLessThan(HOUR_MS / 2 + 1_000)
    expect(left).toBeGreaterThan(HOUR_MS / 2 - 60_000)
  })

  test.each([
    ['no keys', 'demo', 1, /gives one secret|gives no access_key_id/],
    ['a part is missing', 'half', 1, /gives no secret_access_key; it gives: access_key_id\./],
    ['line breaks', 'lines', 1, /several lines/],
    ['unknown', 'nonsense', 1, /mayfly backends/],
  ])('%s: nothing on standard output, one line on standard error', async (_, backend, code, words) => {
    if (backend === 'half') await world.add('half', { fields: { access_key_id: 'ASIAHALF' } })
    if (backend === 'lines')
      await world.add('lines', { fields: { ...AWS_FIELDS, secret_access_key: 'a\n"b' } })
    const end = await runCli(['aws', 'credential-process', '--backend', backend], world)
    expect([end.code, end.stdout]).toEqual([code, ''])
    expect(end.stderr).toMatch(words)
    expect(end.stderr.trim().split('\n')).toHaveLength(1)
    expectNoSecret(end.stderr, 'ASIAHALF', 'a\n"b')
    expect(await world.alive(backend)).toEqual([])
  })

  test('without a backend, a login or a server', async () => {
    const none = await runCli(['aws', 'credential-process'], world)
    expect([none.code, none.stdout]).toEqual([2, ''])
    const bare = { env: { ...world.bareEnv, MAYFLY_SERVER: world.url } }
    const stranger = await runCli(['aws', 'credential-process', '--backend', 'cloud'], bare)
    expect([stranger.code, stranger.stdout]).toEqual([4, ''])
    const env = { ...world.env, MAYFLY_SERVER: 'http://127.0.0.1:1' }
    const nobody = await runCli(['aws', 'credential-process', '--backend', 'cloud'], { env })
    expect([nobody.code, nobody.stdout]).toEqual([3, ''])
  })

  test('prints a profile that leads back here, and asks for nothing', async () => {
    const before = await world.alive()
    const argv = ['aws', 'credential-process', '--backend', 'cloud', '--scope', "it's", '--print']
    const { code, stdout } = await runCli(argv, world)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\[profile mayfly]\ncredential_process = \S+ .*helper aws/)
    expect(stdout).toContain(`--backend cloud --scope 'it'\\''s' --server ${world.url}`)
    expect(await world.alive()).toEqual(before)
  })
})
