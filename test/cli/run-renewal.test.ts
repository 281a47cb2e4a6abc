import { readdir, stat } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner, openGate, recordsOf } from './run-support.ts'
import { spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({ jobs: true })
})
afterAll(() => world.close())

/** Prints what is in the file each time it has changed, `times` times in all. */
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

test('a file is renewed before it ends, never half, and each old credential is revoked', async () => {
  const { agent, env } = await newRunner(world)
  const argv = ['run', '--file', 'TOKEN_FILE=demo', '--ttl', '3s', '--', process.execPath, '-e', WATCH(3)]
  const end = await spawnCli(argv, { env }).ended
  expect(end).toMatchObject({ code: 0, stderr: '' })
  const tokens = end.stdout.trim().split('\n')
  expect(tokens).toHaveLength(3)
  expect(tokens.every((token) => /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/.test(token))).toBe(true)
  const records = await recordsOf(world, agent)
  expect(records.map(({ id }) => id)).toEqual(tokens.map(idOf))
  // None was left to expire: revoked while it lived.
  for (const record of records)
    expect(record).toMatchObject({ status: 'revoked', actions: ['credential.revoked', 'credential.issued'] })
})

test('redaction knows the renewed ones too', async () => {
  const { env } = await newRunner(world)
  const argv = ['run', '--redact', '--file', 'TOKEN_FILE=demo', '--ttl', '1500ms', '--']
  const end = await spawnCli([...argv, process.execPath, '-e', WATCH(2)], { env }).ended
  expect(end).toMatchObject({ code: 0, stdout: '[redacted]\n[redacted]\n' })
})

test('what is in a variable is not renewed, and its end is told', async () => {
  const { agent, env } = await newRunner(world)
  const it = spawnCli(['run', '--env', 'T=demo', '--ttl', '1s', '--', 'cat'], { env, stdin: 'open' })
  await it.said('mayfly: the credential of demo has ended, and what is in variables cannot be renewed.')
  it.child.stdin?.end()
  expect(await it.ended).toMatchObject({ code: 0 })
  const [record, ...others] = await recordsOf(world, agent)
  expect([record?.status, others]).toEqual([expect.stringMatching(/^(expired|revoked)$/), []])
})

test('while it cannot be renewed the old one stays, and it goes on when the server is back', async () => {
  const gate = await openGate(world.url)
  const { agent, env } = await newRunner(world)
  const argv = ['run', '--file', 'TOKEN_FILE=demo', '--ttl', '5s', '--', process.execPath, '-e', WATCH(2)]
  const it = spawnCli(argv, { env: { ...env, MAYFLY_SERVER: gate.url } })
  await it.said(/eyJ/, 'stdout')
  gate.on('POST', 'drop')
  await it.said(
    /^mayfly: the credential of demo could not be renewed yet\. Cannot reach .* It is tried again\.\n/m,
  )
  gate.on('POST', 'pass')
  const end = await it.ended
  expect(end.code).toBe(0)
  expect(end.stderr).toContain('mayfly: the credential of demo is renewed again.\n')
  const records = await recordsOf(world, agent)
  expect(records.at(-1)).toMatchObject({ status: 'revoked' })
  expect(records.some(({ status }) => status === 'active')).toBe(false)
  await gate.close()
})

test('a renewal that is under way when the command ends leaves nothing behind', async () => {
  const gate = await openGate(world.url)
  const { agent, env } = await newRunner(world)
  const argv = [
    'run',
    '--file',
    'TOKEN_FILE=demo',
    '--ttl',
    '1500ms',
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
