import { readdir, stat } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newRunner, openGate, recordsOf } from './run-support.ts'
import { spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({ jobs: true })
})
afterAll(() => world.close())

/** Prints the file each time it changes, `times` times in all. */
const WATCH = (times: number) => `
  const { readFileSync } = require('node:fs')
  let last, seen = 0
  setInterval(() => {
    const text = readFileSync(process.env.TOKEN_FILE, 'utf8')
    if (text === last) return
    last = text
    console.log(text)
    if (++seen === ${times}) process.exit(0)
  }, 5)`

const idOf = (jwt: string): string =>
  JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()).jti

// Every test waits for a credential to age, so they wait together.
describe.concurrent('mayfly run', () => {
  test('renews a file in time, never shows half of it, and revokes each old credential', async () => {
    const { agent, env } = await newRunner(world)
    const argv = ['run', '--file', 'TOKEN_FILE=demo', '--ttl', '4s', '--', process.execPath, '-e', WATCH(3)]
    const end = await spawnCli(argv, { env }).ended
    expect(end).toMatchObject({ code: 0, stderr: '' })
    const tokens = end.stdout.trim().split('\n')
    expect(tokens).toHaveLength(3)
    expect(tokens.every((token) => /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/.test(token))).toBe(true)
    const records = await recordsOf(world, agent)
    expect(records.map(({ id }) => id)).toEqual(tokens.map(idOf))
    // Revoked while it lived, not left to expire.
    for (const record of records)
      expect(record).toMatchObject({
        status: 'revoked',
        actions: ['credential.revoked', 'credential.issued'],
      })
  })

  test('redacts renewed credentials too', async () => {
    const { env } = await newRunner(world)
    const argv = ['run', '--redact', '--file', 'TOKEN_FILE=demo', '--ttl', '1500ms', '--']
    const end = await spawnCli([...argv, process.execPath, '-e', WATCH(2)], { env }).ended
    expect(end).toMatchObject({ code: 0, stdout: '[redacted]\n[redacted]\n' })
  })

  test('does not renew a variable, and reports its end', async () => {
    const { agent, env } = await newRunner(world)
    const it = spawnCli(['run', '--env', 'T=demo', '--ttl', '1s', '--', 'cat'], { env, stdin: 'open' })
    await it.said(
      'mayfly: the credential of demo has expired, and variables of a running command cannot be renewed.',
    )
    it.child.stdin?.end()
    expect(await it.ended).toMatchObject({ code: 0 })
    const [record, ...others] = await recordsOf(world, agent)
    expect([record?.status, others]).toEqual([expect.stringMatching(/^(expired|revoked)$/), []])
  })

  test('keeps the old credential while renewal fails, and renews when the server is back', async () => {
    const gate = await openGate(world.url)
    const { agent, env } = await newRunner(world)
    const argv = ['run', '--file', 'TOKEN_FILE=demo', '--ttl', '5s', '--', process.execPath, '-e', WATCH(2)]
    const it = spawnCli(argv, { env: { ...env, MAYFLY_SERVER: gate.url } })
    await it.said(/eyJ/, 'stdout')
    gate.on('POST', 'drop')
    await it.said(/^mayfly: the credential of demo could not be renewed yet\. Cannot reach .* Retrying\.\n/m)
    gate.on('POST', 'pass')
    const end = await it.ended
    expect(end.code).toBe(0)
    expect(end.stderr).toContain('mayfly: renewed the credential of demo.\n')
    const records = await recordsOf(world, agent)
    expect(records.at(-1)).toMatchObject({ status: 'revoked' })
    expect(records.some(({ status }) => status === 'active')).toBe(false)
    await gate.close()
  })

  test('leaves nothing behind when the command ends during a renewal', async () => {
    const gate = await openGate(world.url)
    const { agent, env } = await newRunner(world)
    const argv = [
      'run',
      '--file',
      'TOKEN_FILE=demo',
      '--ttl',
      '4s',
      '--',
      'sh',
      '-c',
      'echo "$TOKEN_FILE"; cat',
    ]
    const it = spawnCli(argv, { env: { ...env, MAYFLY_SERVER: gate.url }, stdin: 'open' })
    const path = (await it.said(/\n/, 'stdout')).trim()
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    gate.on('POST', 'hold')
    await gate.held('POST')
    it.child.stdin?.end()
    gate.release('POST')
    expect(await it.ended).toMatchObject({ code: 0 })
    const records = await recordsOf(world, agent)
    expect(records).toHaveLength(2)
    expect(records[1]).toMatchObject({ status: 'revoked' })
    await expect(readdir(path.replace(/\/0\/TOKEN_FILE$/, ''))).rejects.toThrow('ENOENT')
    await gate.close()
  })
})
