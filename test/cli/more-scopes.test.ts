import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { decide, POLICY_YAML, pendingOf } from './enroll-support.ts'
import { newHome, runCli, spawnCli, startWorld, type World } from './support.ts'

// An enrolled agent keeps an access token, which carries the scopes of the moment when it was got.
let world: World
let env: Record<string, string>
let name: string
let count = 0
beforeAll(async () => {
  world = await startWorld({ yaml: POLICY_YAML })
  await world.app.newBackend({ name: 'more' })
})
afterAll(() => world.close())
beforeEach(async () => {
  const fresh = await newHome()
  env = { ...fresh.env, MAYFLY_SERVER: world.url }
  count += 1
  name = `ci-more-${count}`
  expect(await mayfly('enroll', '--name', name)).toMatchObject({ code: 0 })
  expect(await mayfly('get', 'demo')).toMatchObject({ code: 0 })
  return () => rm(fresh.home, { recursive: true, force: true })
})

const mayfly = (...argv: string[]) => runCli(argv, { env })
const scopesOf = async () => JSON.parse((await mayfly('status', '--json')).stdout).scopes
const entries = async (action: string): Promise<number> =>
  (await world.app.admin('GET', `/v1/admin/audit?agent=${name}&action=${action}`)).body.length

async function decideAll(verb: 'approve' | 'reject', body: object = {}): Promise<void> {
  for (const { id } of await pendingOf(world.app)) await decide(world.app, id, verb, body)
}

describe('scopes that were approved after the login', () => {
  beforeEach(async () => {
    expect(await mayfly('request', 'more')).toMatchObject({ code: 0 })
    await decideAll('approve')
  })

  test.each([
    ['get', ['get', 'more'], /^eyJ/],
    ['run', ['run', '--backend', 'more', '--', 'sh', '-c', 'echo $MORE_TOKEN'], /^eyJ/],
    [
      'git-credential',
      ['git-credential', '--host', 'git.example.com', '--backend', 'more', 'get'],
      /^password=eyJ/m,
    ],
    ['signing-key --private', ['signing-key', '--private'], /^-----BEGIN PGP PRIVATE KEY BLOCK-----/],
  ])('are available to %s, and to every later call', async (_, argv, said) => {
    const logins = await entries('token.issued')
    const { ended } = spawnCli(argv, { env, stdin: 'protocol=https\nhost=git.example.com\n\n' })
    expect(await ended).toMatchObject({ code: 0, stdout: expect.stringMatching(said) })
    expect(await scopesOf()).toEqual(['demo', 'more'])
    expect(await entries('token.issued')).toBe(logins + 1)
  })
})

describe('a credential without named scopes, after a request', () => {
  const granted = async (): Promise<string[]> =>
    JSON.parse((await mayfly('get', 'more', '--json')).stdout).scopes
  beforeEach(async () => {
    expect(await mayfly('request', 'more:a')).toMatchObject({ code: 0 })
    await decideAll('approve')
    expect(await granted()).toEqual(['a'])
    expect(await mayfly('request', 'more:b')).toMatchObject({ code: 0 })
  })

  test.each([
    ['approved', 'approve', ['a', 'b']],
    ['rejected', 'reject', ['a']],
  ] as const)('has the current scopes, however late it is %s', async (_, verb, scopes) => {
    const logins = await entries('token.issued')
    expect(await granted()).toEqual(['a'])
    expect(await entries('token.issued')).toBe(logins)
    await decideAll(verb)
    expect(await granted()).toEqual(scopes)
    expect(await granted()).toEqual(scopes)
    expect(await entries('token.issued')).toBe(logins + 1)
  })

  test('has them too when one of several requests is decided', async () => {
    expect(await mayfly('request', 'more:c')).toMatchObject({ code: 0 })
    const [first, second] = await pendingOf(world.app)
    await decide(world.app, first?.id ?? '', 'approve')
    expect(await granted()).toEqual(['a', 'b'])
    await decide(world.app, second?.id ?? '', 'approve')
    expect(await granted()).toEqual(['a', 'b', 'c'])
  })
})

test('refuses scopes that the agent still lacks, after one more login', async () => {
  const logins = await entries('token.issued')
  expect(await mayfly('get', 'more')).toMatchObject({ code: 5, stdout: '' })
  expect(await entries('token.issued')).toBe(logins + 1)
})

describe('request --wait', () => {
  test.each([
    ['approved', 'approve', {}, 0, /Approved: more:read\n$/, ['demo', 'more:read']],
    ['approved for more', 'approve', { scopes: ['more'] }, 0, /Approved: more:read\n$/, ['demo', 'more']],
    ['rejected', 'reject', { reason: 'too much' }, 5, /Request enr_\w+ was rejected: too much/, ['demo']],
    [
      'approved in part',
      'approve',
      { scopes: ['more:a'] },
      5,
      /was approved only in part/,
      ['demo', 'more:a'],
    ],
  ] as const)('says of a request whether it was %s', async (_, verb, body, code, said, scopes) => {
    const { said: heard, ended } = spawnCli(['request', 'more:read', '--wait'], { env })
    await heard(/mayfly approve enr_\w+\n/)
    await decideAll(verb, body)
    expect(await ended).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(said) })
    expect(await scopesOf()).toEqual(scopes)
  })
})
