import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addCredentials } from '../support/many-credentials.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'
import { runCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

let world: World
let postgres: TestPostgres
let database: TestDatabase
let env: Record<string, string>

beforeAll(async () => {
  postgres = await startPostgres()
  database = await postgres.createDatabase()
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(async () => {
  await world.close()
  await database.drop()
  await postgres.stop()
})

const mayfly = (...argv: string[]) => runCli(argv, { env })
const shown = async (name: string) => (await world.app.admin('GET', `/v1/admin/backends/${name}`)).body

describe('backend add', () => {
  test('flags of every type become the configuration', async () => {
    const added = await mayfly(
      ...'backend add postgres pg-flags --host 127.0.0.1 --port 6543 --local --grant read-write'.split(' '),
      ...['--database', 'orders', '--username', 'mayfly', '--databases', 'a', '--databases', 'b c'],
      ...'--default-ttl 5m --max-ttl 1h --allow-scope a --rate 10/hour --max-active 3 --no-check'.split(' '),
      ...['--description', 'the orders'],
    )
    expect([added.code, added.stderr]).toEqual([
      0,
      expect.stringContaining('a scope such as pg-flags:orders:read get credentials'),
    ])
    expect(await shown('pg-flags')).toMatchObject({
      default_ttl: '5m',
      max_ttl: '1h',
      allowed_scopes: ['a'],
      description: 'the orders',
      rate: '10/hour',
      max_active: 3,
      config: {
        host: '127.0.0.1',
        port: 6543,
        local: true,
        grant: 'read-write',
        databases: ['a', 'b c'],
        schemas: ['public'],
      },
    })
  })

  test('takes one value, several values, and JSON', async () => {
    expect(
      (await mayfly('backend', 'add', 'jwt', 'one', '--audience', 'a', '--claims', '{"n":1}')).code,
    ).toBe(0)
    expect((await shown('one')).config).toMatchObject({ audience: 'a', claims: { n: 1 } })
    expect((await mayfly('backend', 'add', 'jwt', '--audience=a', '--audience=b', 'two')).code).toBe(0)
    expect((await shown('two')).config.audience).toEqual(['a', 'b'])
  })

  test('prefixes a field with the kind when Mayfly has a flag of that name', async () => {
    const pem = join(world.home, 'ca.pem')
    await writeFile(pem, '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n')
    const argv = 'backend add postgres ca --host db --database d --username u --no-check --postgres-ca-file'
    expect(await mayfly(...argv.split(' '), pem)).toMatchObject({ code: 0 })
    expect((await shown('ca')).config.ca).toContain('BEGIN CERTIFICATE')
  })

  test('a secret comes from a file or from standard input, and is never shown', async () => {
    const file = join(world.home, 'key')
    const jwk = '{"kty":"oct","k":"c2VjcmV0LXNlY3JldA"}'
    await writeFile(file, jwk)
    const from = (place: string, stdin = '') =>
      runCli(['backend', 'add', 'jwt', 'sec', '--audience', 'x', '--signing-key-file', place], { env, stdin })
    // It is no key that this kind takes: what arrived there is told by what is refused, without its text.
    for (const ended of [await from(file), await from('-', `${jwk}\n`)]) {
      expect(ended.code).toBe(2)
      expect(ended.stderr).toContain('signing_key')
      expect(ended.stdout + ended.stderr).not.toContain('c2VjcmV0')
    }
    expect((await from('-', '')).stderr).toMatch(/^mayfly: Standard input is empty\./)
    expect((await from(join(world.home, 'none'))).stderr).toMatch(/none: no such file or directory/)
  })

  test('a secret in the command line is refused before anything is sent', async () => {
    for (const wrong of [['--password', 'hunter2'], ['--password=hunter2']]) {
      const ended = await mayfly('backend', 'add', 'postgres', ...wrong)
      expect(ended.code).toBe(2)
      expect(ended.stderr).toContain('--password-file')
      expect(ended.stderr).not.toContain('hunter2')
    }
  })

  test('JSON from a file or standard input, with flags before it', async () => {
    const config = JSON.stringify({ audience: 'from-json', subject: 'agent_name' })
    const argv = ['backend', 'add', 'jwt', 'json', '--config', '-', '--audience', 'from-flag', '--json']
    const ended = await runCli(argv, { env, stdin: config })
    expect(JSON.parse(ended.stdout).config).toMatchObject({ audience: 'from-flag', subject: 'agent_name' })
    const broken = await runCli(['backend', 'add', 'jwt', 'x', '--config', '-'], { env, stdin: '{"secret' })
    expect([broken.code, broken.stderr]).toEqual([
      2,
      'mayfly: Standard input does not contain a JSON object. Write the fields of the kind as {"host": "…"}.\n',
    ])
  })

  test.each<[string, string[], RegExp]>([
    ['what is missing, all of it', ['postgres'], /Missing: --host, --database, --username\. /],
    ['a kind that there is not', ['postgers'], /is not a kind of backend \(did you mean "postgres"\?\)/],
    ['an unknown flag', ['postgres', '--hots', 'x'], /did you mean "--host"\?.*kind show postgres/i],
    ['no number', ['postgres', '--port', 'many'], /--port must be a whole number/],
    ['no choice', ['postgres', '--grant', 'all'], /read-only, read-write, statements/],
    ['no JSON', ['jwt', '--claims', '{'], /--claims is not valid JSON/],
    ['two names', ['jwt', 'a', 'b', '--audience', 'x'], /too many arguments/i],
    ['flags before the kind', ['--host', 'x', 'postgres'], /The kind must come before its flags/],
    ['what the server refuses', ['jwt', 'x', '--audience', ''], /"audience"/],
    ['a name of no form', ['jwt', 'a b', '--audience', 'x'], /name/],
  ])('wrong usage: %s', async (_, argv, message) => {
    const ended = await mayfly('backend', 'add', ...argv)
    expect([ended.code, ended.stdout]).toEqual([2, ''])
    expect(ended.stderr).toMatch(message)
    expect(ended.stderr.trimEnd().split('\n')).toHaveLength(1)
  })

  test('an unreachable upstream: stores nothing and names the next step', async () => {
    const argv = 'backend add postgres gone --host 127.0.0.1 --port 1 --local --database d --username u'
    const ended = await mayfly(...argv.split(' '))
    expect([ended.code, ended.stderr]).toEqual([
      1,
      'mayfly: The backend was not stored: PostgreSQL cannot be reached. Fix the configuration, or add --no-check to store it untried.\n',
    ])
    expect((await mayfly('backend', 'show', 'gone')).code).toBe(1)
  })

  test('on a terminal it asks: wrong answers again, defaults by Enter, the secret without echo', async () => {
    const url = new URL(database.url)
    const ended = await runTyping(['backend', 'add', 'postgres'], env, [
      ['name [postgres]: ', 'asked'],
      ['host: ', ''],
      ['A value is required.', url.hostname],
      ['port [5432]: ', 'abc'],
      [/It must be a whole number\.[\s\S]*port \[5432\]: /, url.port || '5432'],
      ['database: ', decodeURIComponent(url.pathname.slice(1))],
      ['username: ', decodeURIComponent(url.username)],
      ['password (empty for none): ', decodeURIComponent(url.password)],
      ['local (y/n) [n]: ', 'y'],
      ['grant (read-only, read-write, statements) [read-only]: ', ''],
      ['schemas [public]: ', ''],
    ])
    expect(ended).toMatchObject({ code: 0 })
    expect(ended.stderr).toContain('Role that Mayfly logs in as.')
    if (url.password !== '') expect(ended.stderr + ended.stdout).not.toContain(url.password)
    expect((await shown('asked')).config).toMatchObject({
      host: url.hostname,
      local: true,
      grant: 'read-only',
    })
  })
})

test('a key of several lines is asked for as a file', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = JSON.stringify(privateKey.export({ format: 'jwk' }), null, 2)
  await writeFile(join(world.home, 'key.jwk'), jwk)
  const ended = await runTyping(['backend', 'add', 'jwt'], env, [
    ['name [jwt]: ', 'own-key'],
    ['audience: ', 'orders'],
    ['algorithm (ES256, EdDSA, RS256) [ES256]: ', 'HS256'],
    ['It must be one of ES256, EdDSA, RS256.', ''],
    ['subject (agent_id, agent_name) [agent_id]: ', ''],
    ['signing_key, path of the file (empty for none): ', 'nowhere.jwk'],
    ['nowhere.jwk: no such file or directory.', '-'],
    ['Give the path of a file.', '~/key.jwk'],
  ])
  expect(ended).toMatchObject({ code: 0 })
  const { body } = await world.app.as(undefined).get('/backends/own-key/.well-known/jwks.json')
  expect(body.keys[0].x).toBe(JSON.parse(jwk).x)
  expect(ended.stdout + ended.stderr).not.toContain(JSON.parse(jwk).d)
})

test('answers that did not do are told as flags, without the secret', async () => {
  const ended = await runTyping(['backend', 'add', 'postgres'], env, [
    ['name [postgres]: ', 'mine'],
    ['host: ', '127.0.0.1'],
    ['port [5432]: ', '1'],
    ['database: ', "it's"],
    ['username: ', 'u'],
    ['password (empty for none): ', 'hunter2'],
    ['local (y/n) [n]: ', 'y'],
    ['grant (', ''],
    ['schemas [public]: ', 'a, b'],
  ])
  expect(ended.code).toBe(1)
  expect(ended.stderr).toContain(
    "as flags: backend add postgres mine --host 127.0.0.1 --port 1 --database 'it'\\''s' --username u --password-file FILE --local --schemas a --schemas b\n",
  )
  expect(ended.stderr).not.toContain('hunter2')
})

describe('backend ls, show, update and rm', () => {
  test('keeps omitted fields, and removes a rule', async () => {
    await mayfly('backend', 'add', 'jwt', 'upd', '--audience', 'a', '--rate', '5/hour', '--allow-scope', 'r')
    const before = await shown('upd')
    const ended = await mayfly('backend', 'update', 'upd', '--subject', 'agent_name', '--no-rate', '--json')
    expect(ended.code).toBe(0)
    const after = JSON.parse(ended.stdout)
    expect(after).not.toHaveProperty('rate')
    expect(after).toMatchObject({ allowed_scopes: ['r'], max_ttl: before.max_ttl })
    expect(after.config).toEqual({ ...before.config, subject: 'agent_name' })
    expect((await mayfly('backend', 'update', 'upd', '--allow-any-scope')).code).toBe(0)
    expect(await shown('upd')).not.toHaveProperty('allowed_scopes')
  })

  test('the same key signs after an update: its secret was kept', async () => {
    await mayfly('backend', 'add', 'jwt', 'kept', '--audience', 'a')
    const keys = async () =>
      (await world.app.as(undefined).get('/backends/kept/.well-known/jwks.json')).body.keys
    const before = await keys()
    await mayfly('backend', 'update', 'kept', '--claims', '{"x":1}')
    expect(await keys()).toEqual(before)
    await mayfly('backend', 'update', 'kept', '--unset', 'claims')
    expect((await shown('kept')).config).not.toHaveProperty('claims')
  })

  test.each<[string, string[], RegExp]>([
    ['nothing to change', [], /There is nothing to change/],
    ['a field that there is not', ['--unset', 'nope'], /no such field/],
    ['a field that is needed', ['--unset', 'audience'], /cannot be removed/],
    ['a secret', ['--unset', 'signing_key'], /cannot be removed/],
    ['both', ['--allow-scope', 'a', '--allow-any-scope'], /mutually exclusive/],
    ['another name', ['other'], /one backend only/],
  ])('update, wrong usage: %s', async (_, argv, message) => {
    const ended = await mayfly('backend', 'update', 'demo', ...argv)
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringMatching(message)])
  })

  test('rm: refused while credentials live, asks, and --force ends them', async () => {
    await mayfly('backend', 'add', 'jwt', 'busy', '--audience', 'a')
    const agent = await world.app.newAgent({ scopes: ['busy:*'] })
    await agent.client.post('/api/v1/credentials', { backend: 'busy' })
    const refused = await mayfly('backend', 'rm', 'busy', '--yes')
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/or add --force\.\n$/)])
    expect((await mayfly('backend', 'rm', 'busy')).stderr).toContain('--yes')
    const no = await runTyping(['backend', 'rm', 'busy', '--force'], env, [['[y/N] ', 'n']])
    expect([no.code, (await shown('busy')).name]).toEqual([1, 'busy'])
    const yes = await runTyping(['backend', 'rm', 'busy', '--force'], env, [['[y/N] ', 'y']])
    expect([yes.code, yes.stdout]).toEqual([0, 'Deleted busy.\n'])
    const gone = await mayfly('backend', 'rm', 'busy', '--yes', '--json')
    expect([gone.code, JSON.parse(gone.stderr).error.code]).toEqual([1, 'backend_not_found'])
  })

  test('rm waits while the server ends very many credentials', async () => {
    await mayfly('backend', 'add', 'jwt', 'crowded', '--audience', 'a')
    await addCredentials(world.app.core, 'crowded', world.agent, 10_100)
    const jobs = world.app.app.startJobs()
    const ended = await mayfly('backend', 'rm', 'crowded', '--force', '--yes', '--json')
    await jobs.stop()
    expect([ended.code, JSON.parse(ended.stdout)]).toEqual([0, { deleted: 'crowded' }])
    expect(ended.stderr).toContain('even if you interrupt')
    expect((await mayfly('backend', 'show', 'crowded')).code).toBe(1)
  })

  test('ls and show', async () => {
    expect((await mayfly('backend', 'ls')).stdout).toMatch(
      /^NAME +KIND +DEFAULT TTL +MAX TTL.*\n[\s\S]*^demo +jwt +10m +1h/m,
    )
    expect(JSON.parse((await mayfly('backend', 'ls', '--json')).stdout)).toContainEqual(
      expect.objectContaining({
        name: 'demo',
        config: expect.objectContaining({ signing_key: '[redacted]' }),
      }),
    )
    expect((await mayfly('backend', 'show', 'demo')).stdout).toContain('config.signing_key: [redacted]')
    expect((await mayfly('backend', 'show', '..')).code).not.toBe(0)
  })
})
