import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newHome, runCli, startWorld, type World } from './support.ts'

interface Setting {
  name: string
  value: string | null
  origin: string
}

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

async function show(env: Record<string, string>, ...argv: string[]) {
  const { code, stdout } = await runCli(['config', 'show', '--origin', '--json', ...argv], { env })
  const settings: Setting[] = JSON.parse(stdout)
  return { code, of: (name: string) => settings.find((one) => one.name === name) }
}

describe('of this command', () => {
  test('flag, environment, profile and default, without a secret', async () => {
    const { env: bare, home } = await newHome()
    const fresh = await show(bare)
    expect(fresh.of('server')).toEqual({ name: 'server', value: 'http://127.0.0.1:8620', origin: 'default' })
    expect(fresh.of('login')).toEqual({ name: 'login', value: null, origin: 'default' })
    const named = await show({ ...bare, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: world.agent.token })
    expect(named.of('server')).toMatchObject({ value: world.url, origin: 'environment MAYFLY_SERVER' })
    expect(named.of('login')).toEqual({ name: 'login', value: 'token', origin: 'environment MAYFLY_TOKEN' })
    const flags = await show(
      { ...bare, MAYFLY_SERVER: 'http://127.0.0.1:1' },
      '--server',
      world.url,
      '--no-keychain',
    )
    expect(flags.of('server')).toMatchObject({ value: world.url, origin: 'flag --server' })
    expect(flags.of('keychain')).toMatchObject({ origin: 'flag --no-keychain' })
    const login = ['login', '--server', world.url, '--token-file', '-']
    expect((await runCli(login, { env: bare, stdin: world.agent.token })).code).toBe(0)
    const kept = await show(bare)
    expect(kept.of('server')).toMatchObject({ value: world.url, origin: 'profile default' })
    expect(kept.of('login')).toMatchObject({ value: 'token', origin: 'file, profile default' })
    const text = (await runCli(['config', 'show', '--origin'], { env: bare })).stdout
    expect(text).toMatch(new RegExp(`^config-dir +${home}/config/mayfly +environment XDG_CONFIG_HOME$`, 'm'))
    expect(text).not.toContain(world.agent.token)
  })

  test('reports each fault', async () => {
    const { env: bare } = await newHome()
    expect((await runCli(['config', 'show'], { env: { ...bare, MAYFLY_SERVER: 'x' } })).code).toBe(2)
  })
})

describe('of the server', () => {
  const SECRET = 'postgres://u:hunter2@db/mayfly'

  test('flag before environment before file before default, secrets redacted', async () => {
    const { env: bare, home } = await newHome()
    await writeFile(join(home, 'm.yaml'), 'listen: 0.0.0.0:1\nlog_level: debug\nretention: 30d\n')
    const env = {
      ...bare,
      MAYFLY_LOG_LEVEL: 'warn',
      MAYFLY_DATABASE_URL: SECRET,
      MAYFLY_PROFILE: 'x',
      MAYFLY_TOKEN: 'y',
    }
    const shown = await show(env, '--server-config', 'm.yaml', '--', '--listen', '0.0.0.0:2')
    expect(shown.code).toBe(0)
    expect(shown.of('listen')).toEqual({ name: 'listen', value: '0.0.0.0:2', origin: 'flag --listen' })
    expect(shown.of('log_level')).toMatchObject({ value: 'warn', origin: 'environment MAYFLY_LOG_LEVEL' })
    expect(shown.of('retention')).toMatchObject({ value: '30d', origin: 'm.yaml:3:12' })
    expect(shown.of('log_format')).toMatchObject({ value: 'json', origin: 'default' })
    expect(shown.of('issuer')).toMatchObject({ value: 'http://127.0.0.1:2', origin: 'derived' })
    expect(shown.of('database_url')).toMatchObject({ value: '[redacted]' })
    const text = (await runCli(['config', 'show', '--server-config', 'm.yaml'], { env })).stdout
    expect(text).not.toContain('hunter2')
    const byVariable = await show({ ...bare, MAYFLY_CONFIG: 'm.yaml' }, '--server-config')
    expect(byVariable.of('log_level')).toMatchObject({ value: 'debug' })
  })

  test('every fault, and no secret', async () => {
    const { env: bare, home } = await newHome()
    await writeFile(join(home, 'm.yaml'), `listne: x\nlog_level: loud\n`)
    const env = { ...bare, MAYFLY_DATABASE_URL: 'nonsense-hunter2' }
    const ended = await runCli(['config', 'show', '--server-config', 'm.yaml'], { env })
    expect([ended.code, ended.stdout]).toEqual([2, ''])
    expect(ended.stderr).toMatch(/m\.yaml:1:1: "listne".*\n[\s\S]*m\.yaml:2:12/)
    expect(ended.stderr).not.toContain('hunter2')
    expect((await runCli(['config', 'show', '--server-config', '--', '--nope'], { env: bare })).code).toBe(2)
    expect((await runCli(['config', 'show', '--server-config', 'none.yaml'], { env: bare })).code).toBe(2)
  })
})
