import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Client } from 'ldapts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Config } from '../../src/backends/ldap/config.ts'
import { ldap } from '../../src/backends/ldap/kind.ts'
import { newCredentialId, newRequest } from '../contract/open-kind.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { createTestHost } from '../support/host.ts'
import { HOSTILE_BASE, type LdapServer, startLdapServer } from '../support/ldap-server.ts'

const run = promisify(execFile)
const ROOT = 'dc=example,dc=com'
const SECRETS = `ou=secrets,${ROOT}`
const signal = AbortSignal.timeout(600_000)
let server: LdapServer
let app: TestApp
let agent: NewAgent

const { host } = createTestHost('directory')
const open = (overrides: Partial<Config> = {}) => ldap.open({ ...server.settings, ...overrides }, host)
const request = (...scopes: string[]) => ({ ...newRequest(scopes), params: {} })
const issue = async (scopes: string[], by = agent) =>
  (await by.client.post('/api/v1/credentials', { backend: 'directory', scopes, ttl: '10m' })).body
const reads = (client: Client, dn: string) =>
  client.search(dn, { scope: 'base' }).then(
    ({ searchEntries }) => searchEntries.length === 1,
    () => false,
  )
const ours = () =>
  server.admin(async (client) => {
    const found = await client.search(ROOT, { filter: '(uid=mf_*)', attributes: ['uid'] })
    return found.searchEntries.map(({ uid }) => uid)
  })

beforeAll(async () => {
  server = await startLdapServer()
  app = await startApp()
  await app.newBackend({ type: 'ldap', name: 'directory', config: server.settings })
  agent = await app.newAgent({ scopes: ['directory'] })
})
afterAll(async () => {
  await app?.close()
  await server?.stop()
})

describe('a credential of kind ldap', () => {
  test('works with ldapsearch over StartTLS, and reads what its groups may read', async () => {
    const { fields } = await issue(['readers'])
    const directory = app.directory
    await writeFile(join(directory, 'password'), fields.password, { mode: 0o600 })
    await writeFile(join(directory, 'ca.pem'), server.ca)
    const env = {
      ...{ PATH: process.env['PATH'], LDAPURI: fields.url, LDAPBINDDN: fields.dn },
      LDAPTLS_CACERT: join(directory, 'ca.pem'),
    }
    const search = (base: string) =>
      run('ldapsearch', ['-ZZ', '-x', '-y', join(directory, 'password'), '-LLL', '-s', 'base', '-b', base], {
        env,
      })
    expect((await search(SECRETS)).stdout).toContain('ou: secrets')
    await expect(search(`ou=drafts,${ROOT}`)).rejects.toThrow('No such object')
  })

  test('is a member of the groups of its scopes alone', async () => {
    const narrow = await app.newAgent({ scopes: ['directory:writers'] })
    expect((await issue(['readers'], narrow)).error.code).toBe('scope_not_allowed')
    const { fields } = await issue(['writers'], narrow)
    const client = await server.login(fields.dn, fields.password)
    expect([await reads(client, `ou=drafts,${ROOT}`), await reads(client, SECRETS)]).toEqual([true, false])
    await expect(client.del(fields.dn)).rejects.toThrow()
    await client.unbind()
    expect((await issue(['nobody'])).error.code).toBe('invalid_request')
    const without = await issue([])
    expect(await server.members('readers')).not.toContain(without.fields.dn)
  })

  test('ends within seconds; an open session loses its groups and stays logged in', async () => {
    const { id, fields } = await issue(['readers'])
    const client = await server.login(fields.dn, fields.password)
    expect(await reads(client, SECRETS)).toBe(true)
    const begun = Date.now()
    expect((await agent.client.delete(`/api/v1/credentials/${id}`)).body.upstream).toBe('revoked')
    await eventually(async () => expect(await reads(client, SECRETS)).toBe(false))
    await expect(server.login(fields.dn, fields.password)).rejects.toThrow()
    expect(Date.now() - begun).toBeLessThan(5_000)
    expect(await server.members('readers')).not.toContain(fields.dn)
    // slapd keeps the session of an entry that is gone: rules for `users` still admit it.
    expect(await reads(client, ROOT)).toBe(true)
    await client.unbind()
  })

  test('expired, it is gone by the work of the sweeper, with its memberships', async () => {
    const { fields, expires_at } = await issue(['readers'])
    const client = await server.login(fields.dn, fields.password)
    await app.sweep()
    expect(await reads(client, SECRETS)).toBe(true)
    app.advancePast(expires_at)
    // LDAP_INVALID_CREDENTIALS (RFC 4511, appendix A).
    await eventually(async () => {
      await app.sweep()
      const again = server.login(fields.dn, fields.password).then((late) => late.unbind())
      await expect(again).rejects.toThrow('0x31')
    })
    await eventually(async () => expect(await reads(client, SECRETS)).toBe(false))
    await client.unbind()
    expect(await ours()).not.toContain(fields.username)
    expect(await server.members('readers')).not.toContain(fields.dn)
  })

  test('has a password that only the server’s own hash of is stored', async () => {
    const { fields } = await issue(['readers'])
    const entry = await server.admin(
      async (client) => (await client.search(fields.dn, { scope: 'base' })).searchEntries[0],
    )
    expect(String(entry?.['userPassword'])).toMatch(/^\{ARGON2\}/)
    expect(entry?.['description']).toContain(`Mayfly credential of ${agent.name}`)
  })

  test('goes on after a restart of the server, and outlives none', async () => {
    const before = await issue(['readers'])
    await server.restart()
    const after = await eventually(async () => {
      const issued = await issue(['readers'])
      expect(issued.fields).toBeDefined()
      return issued
    })
    for (const { id } of [before, after])
      expect((await agent.client.delete(`/api/v1/credentials/${id}`)).body.upstream).toBe('revoked')
    await eventually(async () => {
      await app.sweep()
      const left = await ours()
      for (const { fields } of [before, after]) expect(left).not.toContain(fields.username)
    })
  })
})

describe('the kind ldap', () => {
  test('takes a base and names with every character that a DN or a filter escapes', async () => {
    await using backend = await open({ base: HOSTILE_BASE, groups: [`cn=readers,ou=groups,${ROOT}`] })
    expect(await backend.check(signal)).toEqual([])
    const asked = request('readers')
    const hostile = { ...asked, agent: { id: asked.agent.id, name: 'x)(uid=*),cn=admin\\2c' } }
    const { fields, handle } = await backend.issue(hostile, signal)
    await (await server.login(fields?.['dn'], fields?.['password'])).unbind()
    const listed = await backend.list?.(undefined, signal)
    expect(listed?.items.map(({ credentialId }) => credentialId)).toEqual([asked.credentialId])
    await backend.revoke?.(handle ?? {}, signal)
    expect(await server.exists(fields?.['username'], HOSTILE_BASE)).toBe(false)
    expect(await server.members('readers')).not.toContain(fields?.['dn'])
  })

  test.each([
    ['a wrong password', { bind_password: 'wrong' }, 'denied', /refused the login/],
    [
      'a base that is not there',
      { base: `ou=none,${ROOT}` },
      'misconfigured',
      /base, or a group, does not exist/,
    ],
    ['a base without permission', { base: ROOT }, 'denied', /lacks a permission/],
    ['a group that is not there', { groups: [`cn=none,${ROOT}`] }, 'misconfigured', /no group cn=none/],
    ['a group without permission', { groups: [`cn=locked,${ROOT}`] }, 'denied', /lacks a permission/],
    [
      'a group that may become empty',
      { groups: [`cn=empty,ou=groups,${ROOT}`] },
      'misconfigured',
      /permanent member/,
    ],
    ['another authority', { ca: undefined }, 'misconfigured', /certificate that is not trusted/],
    ['loopback without "local"', { local: false }, 'misconfigured', /./],
  ] as const)('names %s in its check, and leaves nothing behind', async (_, overrides, fault, message) => {
    const before = await ours()
    await using backend = await open(overrides as Partial<Config>)
    const error = await backend.check(signal).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: 'BackendError', fault, message: expect.stringMatching(message) })
    expect(await ours()).toEqual(before)
  })

  test.each(['ldaps', 'StartTLS'])('checks the name of the certificate over %s', async (way) => {
    const url = way === 'ldaps' ? server.secureUrl : server.url
    await using good = await open({ url })
    expect(await good.check(signal)).toEqual([])
    await using wrong = await open({ url: url.replace('localhost', '127.0.0.1') })
    await expect(wrong.check(signal)).rejects.toThrow('certificate that is not trusted')
  })

  test('leaves nothing after an issue that the server refuses halfway, and says why', async () => {
    const before = await ours()
    await using backend = await open({ groups: [`cn=readers,ou=groups,${ROOT}`, `cn=locked,${ROOT}`] })
    await expect(backend.issue(request('*'), signal)).rejects.toMatchObject({ fault: 'denied' })
    expect(await ours()).toEqual(before)
  })

  test('revokes by the id alone, in all groups, and never what is not ours', async () => {
    await using backend = await open()
    const asked = request('*')
    await backend.issue(asked, signal)
    await backend.revoke?.(backend.recover?.(asked.credentialId) ?? {}, signal)
    const name = `mf_${asked.credentialId.slice(5)}`
    for (const group of ['readers', 'writers', 'idle'])
      expect((await server.members(group)).join()).not.toContain(name)
    for (const username of ['admin', 'mf_', 'mf_*', `${name},ou=x`])
      await expect(backend.revoke?.({ username }, signal)).rejects.toMatchObject({ fault: 'misconfigured' })
  })

  test('lists more entries than a page, and only those of our form', async () => {
    await using backend = await open()
    const ids = Array.from({ length: 1_100 }, () => newCredentialId())
    const names = ids.map((id) => `mf_${id.slice(5)}`)
    const others = ['mf_x', 'mfa']
    const base = server.settings.base
    await server.admin(async (client) => {
      const entry = (uid: string) => ({ objectClass: 'inetOrgPerson', uid, cn: uid, sn: uid })
      for (const uid of [...names, ...others]) await client.add(`uid=${uid},${base}`, entry(uid))
    })
    const listed = (await backend.list?.(undefined, signal))?.items ?? []
    const found = new Set(listed.map(({ credentialId }) => credentialId))
    expect(ids.filter((id) => !found.has(id))).toEqual([])
    for (const { handle } of listed) expect(others).not.toContain(handle['username'])
    await server.admin(async (client) => {
      for (const uid of [...names, ...others]) await client.del(`uid=${uid},${base}`)
    })
  })

  test('replaces its own password', async () => {
    await using backend = await open()
    const { rotation } = backend
    const next = (await rotation?.propose(signal)) ?? {}
    await rotation?.adopt(next, signal)
    await using renewed = await open(next)
    expect(await renewed.check(signal)).toEqual([])
    // Repeated after a crash, on an instance that has the new one.
    await renewed.rotation?.adopt(next, signal)
    await using old = await open()
    await expect(old.check(signal)).rejects.toMatchObject({ fault: 'denied' })
    await renewed.rotation?.adopt({ bind_password: server.settings.bind_password }, signal)
  })
})
