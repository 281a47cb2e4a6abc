import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newCredentialId, newRequest } from '../../../test/contract/open-kind.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { listInTurns } from '../../../test/support/revoked-in-turns.ts'
import { serialOf } from './certificate.ts'
import type { Config } from './config.ts'
import { ssh } from './kind.ts'

const run = promisify(execFile)
const { host } = createTestHost('servers')
const base: Config = { principals: ['deploy', 'admin'], extensions: [] }
const signal = AbortSignal.timeout(60_000)
let directory = ''
const at = (name: string) => join(directory, name)

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mf-ssh-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function open(overrides: Partial<Config> = {}) {
  const settings = (await ssh.complete?.({ ...base, ...overrides })) ?? base
  return { settings, backend: await ssh.open(settings, host) }
}
const complete = (overrides: Partial<Config>) => ssh.complete?.({ ...base, ...overrides })
const fault = (name: string) => expect.objectContaining({ name: 'BackendError', fault: name })

describe('the key of the CA', () => {
  it('is generated in the form of ssh-keygen, and kept with its public half', async () => {
    const { settings } = await open()
    await writeFile(at('ca'), settings.ca_key ?? '', { mode: 0o600 })
    expect((await run('ssh-keygen', ['-y', '-f', at('ca')])).stdout.trim()).toBe(settings.ca_public_key)
    expect(await ssh.complete?.(settings)).toEqual(settings)
    expect(await complete({ ca_public_key: 'ssh-ed25519 AAAA of another' })).not.toMatchObject({
      ca_public_key: expect.stringContaining('another'),
    })
  })

  it.each(['ssh-keygen', 'openssl'])('is taken from %s', async (program) => {
    const file = at(program)
    if (program === 'openssl') await run('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', file])
    else await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'a longer comment', '-f', file])
    const settings = await complete({ ca_key: await readFile(file, 'utf8') })
    await writeFile(at('same'), settings?.ca_key ?? '', { mode: 0o600 })
    if (program === 'ssh-keygen')
      expect((await run('ssh-keygen', ['-y', '-f', at('same')])).stdout.split(' ')[1]).toBe(
        settings?.ca_public_key?.split(' ')[1],
      )
    expect(settings?.ca_public_key).toMatch(/^ssh-ed25519 AAAA/)
  })

  it('is refused when encrypted, of another type, or no key, without a word of it', async () => {
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', 'secret', '-f', at('locked')])
    await run('ssh-keygen', ['-q', '-t', 'ecdsa', '-N', '', '-f', at('ecdsa')])
    for (const name of ['locked', 'ecdsa', 'locked.pub'])
      await expect(complete({ ca_key: await readFile(at(name), 'utf8') })).rejects.toThrow(
        '"ca_key" is not an Ed25519 private key without a passphrase.',
      )
  })
})

describe('a certificate', () => {
  it('is never without principals, and a scope reaches those it names alone', async () => {
    const { backend } = await open()
    for (const scopes of [[], ['root'], ['deploy', 'nobody'], ['dep'], ['x*']])
      await expect(backend.issue({ ...newRequest(scopes), params: {} }, signal)).rejects.toEqual(
        fault('unsupported'),
      )
    for (const [scope, isGiven] of [
      ['*', true],
      ['admin', true],
      ['adm*', true],
      ['x*', false],
    ] as const)
      expect([scope, ssh.scopes.gives?.(base, scope)]).toEqual([scope, isGiven])
  })

  it('is refused where its life would be shorter than a second', async () => {
    const { backend } = await open()
    const request = { ...newRequest(['deploy']), params: {}, issuedAt: 1_000, expiresAt: 1_999 }
    await expect(backend.issue(request, signal)).rejects.toEqual(fault('unsupported'))
  })

  it.each([
    ['nothing', 'ssh-ed25519'],
    ['DSA', 'ssh-dss AAAAB3NzaC1kc3M='],
    ['empty strings', `ssh-ed25519 ${'A'.repeat(3_000)}`],
    ['a name of objects', '__proto__ AAAA'],
    ['half a key', 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ=='],
  ])('is not issued for %s', async (_, public_key) => {
    const { backend } = await open()
    await expect(
      backend.issue({ ...newRequest(['deploy']), params: { public_key } }, signal),
    ).rejects.toEqual(fault('unsupported'))
  })

  it('is not issued for an RSA key of 1024 bits', async () => {
    const { backend } = await open()
    await run('ssh-keygen', ['-q', '-t', 'rsa', '-b', '1024', '-N', '', '-f', at('short')])
    const params = { public_key: await readFile(at('short.pub'), 'utf8') }
    await expect(backend.issue({ ...newRequest(['deploy']), params }, signal)).rejects.toEqual(
      fault('unsupported'),
    )
  })

  it('takes networks without bits beyond their mask', async () => {
    await expect(complete({ source_addresses: ['10.0.0.0/33'] })).rejects.toEqual(fault('misconfigured'))
    const { backend } = await open({ source_addresses: ['10.1.2.3/8', '::1'] })
    const { fields } = await backend.issue({ ...newRequest(['deploy']), params: {} }, signal)
    const blob = Buffer.from(String(fields?.['certificate']).split(' ')[1] ?? '', 'base64')
    expect(blob.includes('10.0.0.0/8,::1/128')).toBe(true)
  })

  it('warns of root', async () => {
    const { backend } = await open({ principals: ['root'] })
    expect(await backend.check(signal)).toEqual([expect.stringContaining('root')])
  })
})

it('revokes by serial, 20,000 of them and no other, and lets other work have its turn meanwhile', async () => {
  const { backend } = await open()
  const issue = async () => {
    const request = { ...newRequest(['deploy']), params: {} }
    const { fields, facts } = await backend.issue(request, signal)
    await writeFile(at(`${request.credentialId}.pub`), `${fields?.['certificate']}\n`)
    expect(facts?.['serial']).toBe(String(serialOf(request.credentialId)))
    return request.credentialId
  }
  const [revoked, living] = [await issue(), await issue()]
  const others = Array.from({ length: 20_000 }, () => newCredentialId())
  const { body, most } = await listInTurns(backend.revocationList, [...others, revoked])
  expect(most).toBeLessThanOrEqual(2_000)
  await writeFile(at('krl'), body)
  const query = (id: string) =>
    run('ssh-keygen', ['-Q', '-f', at('krl'), at(`${id}.pub`)]).catch(({ stdout }) => ({ stdout }))
  expect((await query(revoked)).stdout).toMatch(/REVOKED\n$/)
  expect((await query(living)).stdout).toMatch(/ok\n$/)
})
