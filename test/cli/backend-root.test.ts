import { afterAll, beforeAll, expect, test } from 'vitest'
import { newCredentialId } from '../contract/open-kind.ts'
import { startOwnPostgres } from '../support/postgres.ts'
import { createLogin, openUpstreamDatabase, type UpstreamDatabase } from '../support/upstream-database.ts'
import { runCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

let world: World
let upstream: UpstreamDatabase
let username: string
let env: Record<string, string>

beforeAll(async () => {
  upstream = await openUpstreamDatabase(await startOwnPostgres())
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
  const login = await createLogin(upstream)
  username = login.username
  const body = { type: 'postgres', name: 'db', config: upstream.config(login) }
  expect((await world.app.admin('POST', '/v1/admin/backends', body)).status).toBe(200)
})
afterAll(async () => {
  await world.close()
  await upstream.close()
})

const mayfly = (...argv: string[]) => runCli(['backend', ...argv], { env })
const verifier = async () =>
  (await upstream.root.query('SELECT rolpassword FROM pg_authid WHERE rolname = $1', [username])).rows[0]
const roles = async () =>
  (await upstream.root.query("SELECT rolname FROM pg_roles WHERE rolname ~ '^mf_'")).rowCount
const lose = async () => {
  const id = newCredentialId()
  const until = new Date(Date.now() + 3_600_000).toISOString()
  await upstream.root.query(`CREATE ROLE mf_${id.slice('cred_'.length)} LOGIN VALID UNTIL '${until}'`)
  return id
}

test('rotate-root replaces the password, once that is confirmed', async () => {
  const before = await verifier()
  expect(await mayfly('rotate-root', 'db')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--yes'),
  })
  expect(await verifier()).toEqual(before)
  const typed = await runTyping(['backend', 'rotate-root', 'DB'], env, [
    [/Replace the secret that Mayfly logs in with at db\? The old one ends\./, 'y'],
  ])
  expect(typed).toMatchObject({ code: 0, stdout: 'Replaced password of db.\n' })
  const once = await verifier()
  expect(once).not.toEqual(before)
  const json = await mayfly('rotate-root', 'db', '--yes', '--json')
  expect([json.code, JSON.parse(json.stdout)]).toEqual([
    0,
    { name: 'db', fields: ['password'], rotated_at: expect.any(String), resumed: false, old_ended: true },
  ])
  expect(await verifier()).not.toEqual(once)
  expect(await mayfly('show', 'db')).toMatchObject({ stdout: expect.not.stringContaining('rotation') })
})

test('rotate-root says what is wrong', async () => {
  const none = await mayfly('rotate-root', 'demo', '--yes')
  expect([none.code, none.stderr]).toEqual([
    2,
    expect.stringContaining('no root secret that Mayfly can replace'),
  ])
  expect((await mayfly('rotate-root', 'nowhere', '--yes')).stderr).toContain('backend')
})

test('reconcile lists, and ends only what was confirmed', async () => {
  const clean = await mayfly('reconcile', 'db')
  expect(clean).toMatchObject({
    code: 0,
    stdout: '',
    stderr: '0 accounts seen; a living credential owns each.\n',
  })
  const id = await lose()
  const looked = await mayfly('reconcile', 'db')
  expect(looked.stdout).toMatch(new RegExp(`^CREDENTIAL +EXPIRES +OUTCOME\n${id} +in .* left\n$`))
  expect(looked.stderr).toContain(
    'no credential owns 1 of them. End these with --revoke, unless another Mayfly',
  )
  expect(await mayfly('reconcile', 'db', '--revoke')).toMatchObject({ code: 2 })
  const refused = await runTyping(['backend', 'reconcile', 'db', '--revoke'], env, [
    [/End 1 account at db that this Mayfly has no credential for\?/, 'n'],
  ])
  expect([refused.code, await roles()]).toEqual([1, 1])
  const ended = await runTyping(['backend', 'reconcile', 'db', '--revoke'], env, [
    [/End 1 account at db/, 'y'],
  ])
  expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining('revoked') })
  expect(await roles()).toBe(0)
})

test('reconcile answers programs, and fails where the upstream refuses', async () => {
  const id = await lose()
  const json = await mayfly('reconcile', 'db', '--revoke', '--yes', '--json')
  expect([json.code, JSON.parse(json.stdout)]).toEqual([
    0,
    {
      name: 'db',
      seen: 1,
      accounts: [{ credential_id: id, expires_at: expect.any(String), outcome: 'revoked' }],
    },
  ])
  const kept = await lose()
  // A grant that another role has made cannot be taken back by Mayfly's login.
  await upstream.root.query(`ALTER ROLE ${username} NOSUPERUSER CREATEROLE`)
  const failed = await mayfly('reconcile', 'db', '--revoke', '--yes')
  expect([failed.code, failed.stdout]).toEqual([1, expect.stringMatching(new RegExp(`${kept} .* failed`))])
  expect(failed.stderr).toContain('The upstream did not end 1 of 1 account.')
  expect((await mayfly('reconcile', 'demo')).stderr).toContain('cannot be reconciled')
})
