import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

let world: World
let env: Record<string, string>
let name: string
let token: string
let count = 0
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())
beforeEach(async () => {
  count += 1
  const made = await world.app.newAgent({ name: `u${count}`, scopes: ['demo:a', 'demo:b'] })
  name = made.name
  token = made.token
})

const mayfly = (...argv: string[]) => runCli(argv, { env })
const shown = async () => (await world.app.admin('GET', `/v1/admin/agents/${name}`)).body
const works = async (text: string) => (await world.app.as(text).get('/v1/status')).status === 200

describe('agent update', () => {
  test('adds, removes and replaces scopes', async () => {
    const added = await mayfly('agent', 'update', name, '--add-scope', 'demo:c', '--remove-scope', 'demo:a')
    expect([added.code, added.stderr]).toEqual([0, ''])
    expect(added.stdout).toMatch(/^scopes: +demo:b, demo:c$/m)
    const replaced = await mayfly('agent', 'update', name, '--scope', 'demo:x', '--scope', 'demo:y', '--json')
    expect(JSON.parse(replaced.stdout)).toMatchObject({ name, scopes: ['demo:x', 'demo:y'] })
  })

  test('sets and removes expiry, audiences and description', async () => {
    const set = ['--expires-in', '2h', '--audience', 'sts.example', '--description', 'nightly']
    const { stdout } = await mayfly('agent', 'update', name, ...set)
    expect(stdout).toMatch(/^expires: +in 2 h$/m)
    expect(stdout).toMatch(/^audiences: +sts\.example$/m)
    expect(stdout).toMatch(/^description: +nightly$/m)
    await mayfly('agent', 'update', name, '--expires-at', '2090-01-31T12:00:00Z')
    expect((await shown()).expires_at).toBe('2090-01-31T12:00:00.000Z')
    await mayfly('agent', 'update', name, '--no-expiry', '--no-audiences', '--description', '')
    const { expires_at, audiences, description } = await shown()
    expect([expires_at, audiences, description]).toEqual([null, undefined, undefined])
  })

  test('sets and removes the owner', async () => {
    const { stdout } = await mayfly('agent', 'update', name, '--owner', 'team \u001b[31mred')
    expect(stdout).toMatch(/^owner: +team \ufffd\[31mred$/m)
    expect((await shown()).owner).toBe('team \u001b[31mred')
    expect((await mayfly('agent', 'ls', name)).stdout).toMatch(/OWNER\n.* team \ufffd\[31mred$/m)
    await mayfly('agent', 'update', name, '--owner', '')
    expect((await mayfly('agent', 'show', name)).stdout).toMatch(/^owner: +local$/m)
    const made = await mayfly('agent', 'create', `${name}-owned`, '--owner', 'team-payments', '--json')
    expect(made.code).toBe(0)
    expect((await mayfly('agent', 'show', `${name}-owned`)).stdout).toMatch(/^owner: +team-payments$/m)
  })

  test('lists the credentials beyond the new scopes, and revokes them', async () => {
    const { body } = await world.app.as(token).post('/api/v1/credentials', { backend: 'demo', scopes: ['b'] })
    const listed = await mayfly('agent', 'update', name, '--remove-scope', 'demo:b')
    expect(listed.stderr).toContain('Still active, although its scopes no longer cover them:')
    expect(listed.stderr).toMatch(new RegExp(`^${body.id}  demo +b +in `, 'm'))
    expect(listed.stderr).toContain(`\`mayfly agent update ${name} --revoke\``)
    const revoked = await mayfly('agent', 'update', name, '--revoke')
    expect(revoked.stderr).toMatch(new RegExp(`^Revoked[\\s\\S]*^${body.id}`, 'm'))
    const now = await world.app.as(token).get(`/api/v1/credentials/${body.id}`)
    expect(now.body.status).toBe('revoked')
  })

  test('warns on standard error', async () => {
    const ended = await mayfly('agent', 'update', name, '--add-scope', 'dmeo:a')
    expect([ended.code, ended.stderr]).toEqual([
      0,
      'Warning: The scope "dmeo:a" names no backend: there is none called "dmeo".\n',
    ])
    const made = await mayfly('agent', 'create', `w-${name}`, '--scope', 'dmeo:a')
    expect(made.stderr).toContain('Warning: The scope "dmeo:a" names no backend')
  })

  test.each<[string, string[], number, RegExp]>([
    ['nothing', [], 2, /nothing to change/],
    ['two ways to set scopes', ['--scope', 'a', '--add-scope', 'b'], 2, /replaces all/],
    ['two expiries', ['--expires-in', '1h', '--no-expiry'], 2, /mutually exclusive/],
    ['audiences and none', ['--audience', 'a', '--no-audiences'], 2, /mutually exclusive/],
    ['a scope that it does not hold', ['--remove-scope', 'demo:z'], 2, /does not hold/],
    ['a scope of no form', ['--add-scope', '!'], 2, /scope/],
  ])('refused: %s', async (_, argv, code, message) => {
    const ended = await mayfly('agent', 'update', name, ...argv)
    expect([ended.code, ended.stdout, ended.stderr]).toEqual([code, '', expect.stringMatching(message)])
    expect((await shown()).scopes).toEqual(['demo:a', 'demo:b'])
  })

  test('an unknown agent', async () => {
    const ended = await mayfly('agent', 'update', 'nobody', '--no-expiry')
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining('`mayfly agent ls`')])
  })
})

describe('agent rotate', () => {
  test('asks, and shows new secrets once', async () => {
    const no = await runTyping(['agent', 'rotate', name], env, [['The old ones end now. [y/N] ', 'n']])
    expect([no.code, await works(token)]).toEqual([1, true])
    const yes = await mayfly('agent', 'rotate', name, '--yes')
    expect([yes.code, yes.stderr]).toEqual([0, 'The token and the client secret cannot be shown again.\n'])
    const fresh = /^token: +(ckr_\S+)$/m.exec(yes.stdout)?.[1] ?? ''
    expect([await works(token), await works(fresh)]).toEqual([false, true])
  })

  test('--grace keeps the old ones for a while, and says how long', async () => {
    const ended = await mayfly('agent', 'rotate', name, '--grace', '1h', '--yes', '-o', 'field=token')
    expect(ended.stderr).toMatch(/The old ones are valid until 20\d\d-.*Z\.\n$/)
    expect([await works(token), await works(ended.stdout.trim())]).toEqual([true, true])
    expect((await mayfly('agent', 'show', name)).stdout).toMatch(/^old secrets end: +in \d+ min$/m)
  })

  test('--write: a new file for this user alone; an existing one stops it before anything is replaced', async () => {
    const file = join(world.home, `${name}.json`)
    const ended = await mayfly('agent', 'rotate', name, '--write', `${name}.json`, '--yes')
    const fresh = JSON.parse(await readFile(file, 'utf8')).token
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(ended.stdout + ended.stderr).not.toContain(fresh)
    expect((await mayfly('agent', 'rotate', name, '--write', `${name}.json`, '--yes')).code).toBe(2)
    expect(await works(fresh)).toBe(true)
  })

  test('says so when the new secrets reached nobody', async () => {
    const full = new Writable({
      write: (_chunk, _encoding, done) =>
        done(Object.assign(new Error('full'), { code: 'ENOSPC', syscall: 'write' })),
    })
    full.on('error', () => {})
    const ended = await runCli(['agent', 'rotate', name, '--yes'], { env, stdout: full })
    expect([ended.code, await works(token)]).toEqual([1, false])
    expect(ended.stderr).toContain(
      `The secrets were replaced. If nobody has the new secrets, run \`mayfly agent rotate ${name}\``,
    )
  })

  test('needs the admin scope, and --yes without a terminal', async () => {
    const plain = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: world.agent.token }
    for (const verb of [
      ['rotate', name, '--yes'],
      ['update', name, '--no-expiry'],
    ]) {
      const refused = await runCli(['agent', ...verb], { env: plain })
      expect([refused.code, refused.stderr]).toEqual([
        5,
        expect.stringMatching(/admin:agents:(?:read|write)/),
      ])
    }
    expect((await mayfly('agent', 'rotate', name)).code).toBe(2)
    expect(await works(token)).toBe(true)
  })
})
