import { afterAll, beforeAll, expect, test } from 'vitest'
import { callAsPage, enter, linkOf, newPerson } from '../support/person.ts'
import { runCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const cli = (...argv: string[]) =>
  runCli([...argv, '--data-dir', world.app.directory], { env: world.bareEnv })
const LINK = /^http:\/\/localhost:\d+\/console#link=mfl_[0-9a-f]{64}\n$/

test('console prints a link under the name that can have passkeys, and says for whom', async () => {
  const first = await cli('console')
  expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(LINK) })
  expect(first.stderr).toMatch(
    /^For the first operator: the person who opens it\. It works once, and ends in \d+ s\.\n$/,
  )
  const json = await cli('console', '--json')
  expect(JSON.parse(json.stdout)).toMatchObject({ operator: null, expires_at: expect.any(String) })
  expect(await cli('console', '--operator', 'nobody@example.com')).toMatchObject({ code: 1 })
})

test('console needs the socket: a login of an agent makes no links', async () => {
  const admin = await world.app.newAgent({ scopes: ['admin:*'] })
  const env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: admin.token }
  const refused = await runCli(['console'], { env, cwd: world.home })
  expect(refused.code).not.toBe(0)
  expect(refused.stderr).toContain("only on the server's machine")
})

test('console finds the server that this user started last', async () => {
  const { rememberServer } = await import('../../src/cli/session/last-server.ts')
  const where = { env: world.bareEnv, home: world.home, cwd: world.home }
  await rememberServer(where, { dataDir: world.app.directory, listen: new URL(world.url).host })
  const found = await runCli(['console'], { env: world.bareEnv, cwd: world.home })
  expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(LINK) })
})

test('invites, lists, changes and removes operators', async () => {
  const invited = await cli(
    'operator',
    'invite',
    'Bob@example.com',
    '--name',
    'Bob',
    '--scope',
    'admin:*',
    '--backend-scope',
    'demo',
  )
  expect(invited).toMatchObject({ code: 0, stdout: expect.stringMatching(LINK) })
  expect(invited.stderr).toMatch(/^For bob@example\.com\. It works once, and ends in 24 h\.\n$/)
  expect((await cli('operator', 'ls')).stdout).toMatch(/^bob@example\.com +Bob +admin:\* +demo +invited *$/m)
  const again = await cli('operator', 'invite', 'bob@example.com')
  expect(again).toMatchObject({ code: 0, stdout: expect.stringMatching(LINK) })
  const followed = await callAsPage(world.app, 'POST', '/v1/console/login/link', {
    link: linkOf(invited.stdout.trim()),
  })
  expect(followed.status).toBe(401)
  await enter(world.app, linkOf(again.stdout.trim()), { id: '', email: 'bob@example.com' })
  const changed = await cli(
    'operator',
    'change',
    'bob@example.com',
    '--scope',
    'admin:audit:read',
    '--backend-scope',
    '',
  )
  expect(changed.stdout).toMatch(/scopes: +admin:audit:read\nbackend scopes: +\(none\)/)
  expect(await cli('operator', 'change', 'bob@example.com')).toMatchObject({ code: 2 })
  expect(await cli('operator', 'change', 'nobody@example.com', '--name', 'X')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('mayfly operator ls'),
  })
  expect(await cli('operator', 'rm', 'bob@example.com')).toMatchObject({ code: 2 })
  expect(await cli('operator', 'rm', 'bob@example.com', '--yes')).toMatchObject({
    code: 0,
    stdout: 'Removed bob@example.com.\n',
  })
  expect(JSON.parse((await cli('operator', 'ls', '--json')).stdout)).toEqual([])
})

test('lists and ends sessions', async () => {
  const alice = await newPerson(world.app)
  const listed = await cli('operator', 'sessions', 'ls')
  expect(listed.stdout).toContain(alice.email)
  const [one] = JSON.parse((await cli('operator', 'sessions', 'ls', alice.email, '--json')).stdout)
  expect(await cli('operator', 'sessions', 'end', one.id)).toMatchObject({
    code: 0,
    stdout: 'Ended 1 session.\n',
  })
  expect((await alice.call('GET', '/v1/admin/me')).status).toBe(401)
  expect(await cli('operator', 'sessions', 'end', one.id)).toMatchObject({ code: 1 })
  expect((await cli('operator', 'sessions', 'end', alice.email)).stdout).toBe('Ended 0 sessions.\n')
  expect(await cli('operator', 'sessions', 'end')).toMatchObject({ code: 2 })
  expect(await cli('operator', 'sessions', 'ls', 'nobody@example.com')).toMatchObject({ code: 1 })
})

test('audit verify-confirmation checks an entry from the audit alone', async () => {
  const alice = await newPerson(world.app)
  const body = { name: 'powerful', scopes: ['admin:audit:read'] }
  expect((await alice.act('POST', '/v1/admin/agents', body)).status).toBe(200)
  const entries = (await world.app.local.get('/v1/admin/audit?action=agent.created&limit=1')).body
  const { id } = entries[0]
  const checked = await cli('audit', 'verify-confirmation', id)
  expect(checked).toMatchObject({ code: 0, stderr: '' })
  expect(checked.stdout).toContain(`operator:${alice.email} (${alice.id})`)
  expect(checked.stdout).toContain('POST /v1/admin/agents')
  expect(checked.stdout).toContain('"scopes":["admin:audit:read"]')
  expect(JSON.parse((await cli('audit', 'verify-confirmation', id, '--json')).stdout)).toMatchObject({
    confirmed: true,
    operator_id: alice.id,
    request: { method: 'POST', path: '/v1/admin/agents', body },
  })
  // The person and the passkey may be gone by then.
  expect((await cli('operator', 'rm', alice.email, '--yes')).code).toBe(0)
  expect(await cli('audit', 'verify-confirmation', id)).toMatchObject({ code: 0 })
  await world.app.newAgent()
  const [plain] = (await world.app.local.get('/v1/admin/audit?action=agent.created&limit=1')).body
  expect(await cli('audit', 'verify-confirmation', plain.id)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no confirmation'),
  })
  for (const wrong of [[], ['aud_x'], [`aud_${'0'.repeat(26)}`]])
    expect((await cli('audit', 'verify-confirmation', ...wrong)).code).not.toBe(0)
})
