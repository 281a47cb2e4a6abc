import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newCredentialId, newRequest } from '../../../test/contract/open-kind.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { listInTurns } from '../../../test/support/revoked-in-turns.ts'
import { DAY_MS } from '../../domain/limits.ts'
import type { Config } from './config.ts'
import { x509 } from './kind.ts'
import { serialOf } from './list.ts'

const run = promisify(execFile)
const { host } = createTestHost('tls')
const base: Config = { names: ['worker'], usage: 'client' }
const signal = AbortSignal.timeout(60_000)
const fault = (name: string) => expect.objectContaining({ name: 'BackendError', fault: name })
const complete = (overrides: Partial<Config>) => x509.complete?.({ ...base, ...overrides })
let directory = ''
const at = (name: string) => join(directory, name)

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mf-x509-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** An authority of openssl, as an administrator may bring one. */
async function ownAuthority(name: string, algorithm: string[], extra: string[] = []) {
  await run('openssl', [
    ...['req', '-x509', ...algorithm, '-nodes', '-days', '90', '-utf8', '-subj', '/O=Käse/CN=Own CA'],
    ...['-keyout', at(`${name}.key`), '-out', at(`${name}.crt`), ...extra],
  ])
  const [ca_key, ca_certificate] = await Promise.all([
    readFile(at(`${name}.key`), 'utf8'),
    readFile(at(`${name}.crt`), 'utf8'),
  ])
  return { ca_key, ca_certificate }
}
const CURVE = (name: string) => ['-newkey', 'ec', '-pkeyopt', `ec_paramgen_curve:${name}`]

describe('the authority', () => {
  it.each([
    ['P-256', CURVE('P-256')],
    ['P-384', CURVE('P-384')],
    ['RSA', ['-newkey', 'rsa:2048']],
  ])('may be one of openssl: %s', async (name, algorithm) => {
    const usage = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign']
    const authority = await ownAuthority(name, algorithm, usage)
    const settings = await complete(authority)
    expect(settings).toMatchObject(authority)
    const backend = await x509.open(settings ?? base, host)
    const { fields, facts } = await backend.issue({ ...newRequest(['worker']), params: {} }, signal)
    await writeFile(at('leaf.pem'), String(fields?.['certificate']))
    const list = await backend.revocationList?.([])
    await writeFile(at('crl.der'), list?.body ?? '')
    await run('openssl', ['crl', '-inform', 'DER', '-in', at('crl.der'), '-out', at('crl.pem')])
    const files = ['-CAfile', at(`${name}.crt`), '-CRLfile', at('crl.pem'), at('leaf.pem')]
    const { stdout } = await run('openssl', ['verify', '-x509_strict', '-crl_check', ...files])
    expect(stdout).toMatch(/: OK\n$/)
    expect(new X509Certificate(String(fields?.['certificate'])).serialNumber.toLowerCase()).toBe(
      facts?.['serial'],
    )
  })

  it('is refused where it cannot sign, without a word of its key', async () => {
    const good = await ownAuthority('good', CURVE('P-256'))
    const other = await ownAuthority('other', CURVE('P-256'))
    const leaf = await ownAuthority('leaf', CURVE('P-256'), ['-addext', 'basicConstraints=critical,CA:FALSE'])
    const weak = await ownAuthority('weak', ['-newkey', 'rsa:1024'])
    for (const overrides of [
      { ca_key: good.ca_key },
      { ca_certificate: good.ca_certificate },
      { ...good, ca_key: other.ca_key },
      { ...good, ca_key: 'no key' },
      leaf,
      weak,
    ]) {
      const error = await complete(overrides)?.catch((thrown: Error) => thrown)
      expect(error).toEqual(fault('misconfigured'))
      expect((error as Error).message).not.toContain('BEGIN')
    }
  })

  it('is never outlived, and its own end is announced', async () => {
    const settings = await complete(await ownAuthority('short', CURVE('P-256')))
    const now = Date.now()
    const later = { ...host, now: () => now + 31 * DAY_MS }
    const backend = await x509.open(settings ?? base, later)
    expect(await backend.check(signal)).toEqual([expect.stringContaining('authority ends')])
    const request = { ...newRequest(['worker']), params: {}, expiresAt: now + 91 * DAY_MS }
    await expect(backend.issue(request, signal)).rejects.toEqual(fault('misconfigured'))
  })
})

describe('names', () => {
  it.each([
    'Web.example.com',
    '-a',
    'a..b',
    'a.*',
    'spiffe://example.com',
    'spiffe://example.com/a/../b',
    'spiffe://example.com/a//b',
    'spiffe://EXAMPLE.com/a',
    'https://example.com/a',
    'spiffe://*',
  ])('of a configuration are hosts or SPIFFE IDs: not %s', async (name) => {
    await expect(complete({ names: [name] })).rejects.toEqual(fault('misconfigured'))
  })

  it('of a scope', () => {
    for (const scope of ['web', 'a.b.c', 'spiffe://x/y', '*', 'web*', 'spiffe://x/*', 'spiffe:*'])
      expect([scope, x509.scopes.valid(scope)]).toEqual([scope, true])
    for (const scope of ['Web', 'a@b', 'https://x/y', 'spiffe://x', 'spiffe://x/../y', 'a:b', 'a*:b'])
      expect([scope, x509.scopes.valid(scope)]).toEqual([scope, false])
    const names = ['web', '*.example.com', 'spiffe://x/ns/*']
    const gives = (scope: string) => x509.scopes.gives?.({ ...base, names }, scope)
    for (const scope of [
      'web',
      'w*',
      '*',
      'a.b.example.com',
      'spiffe://x/ns/a',
      'spiffe://x/ns/a*',
      'spiffe:*',
    ])
      expect([scope, gives(scope)]).toEqual([scope, true])
    for (const scope of ['example.com', 'aexample.com', 'spiffe://x/n', 'spiffe://y/*', 'spiffe://x/ns'])
      expect([scope, gives(scope)]).toEqual([scope, false])
  })

  it('with a star are issued only where they are spelled out', async () => {
    const backend = await x509.open((await complete({ names: ['web', '*.example.com'] })) ?? base, host)
    const ask = (scope: string) => backend.issue({ ...newRequest([scope]), params: {} }, signal)
    const { fields } = await ask('*')
    expect(new X509Certificate(String(fields?.['certificate'])).subjectAltName).toBe('DNS:web')
    await expect(ask('a*')).rejects.toEqual(fault('unsupported'))
  })
})

it.each([
  ['no PEM', 'hello'],
  ['another PEM', '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----'],
])('refuses a request that is %s', async (_, csr) => {
  const backend = await x509.open((await complete({})) ?? base, host)
  await expect(backend.issue({ ...newRequest(['worker']), params: { csr } }, signal)).rejects.toEqual(
    fault('unsupported'),
  )
})

it('refuses a request with a weak key, or whose signature is by another key', async () => {
  const backend = await x509.open((await complete({})) ?? base, host)
  const make = async (bits: number) => {
    const files = ['-nodes', '-keyout', at('csr.key'), '-out', at('csr.pem'), '-subj', '/CN=a']
    await run('openssl', ['req', '-new', '-newkey', `rsa:${bits}`, ...files])
    return readFile(at('csr.pem'), 'utf8')
  }
  const good = await make(2048)
  const bytes = Buffer.from(good.replace(/-----[^-]+-----/g, ''), 'base64')
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 9) ^ 1, bytes.length - 9)
  const label = 'CERTIFICATE REQUEST'
  const forged = `-----BEGIN ${label}-----\n${bytes.toString('base64')}\n-----END ${label}-----`
  for (const csr of [await make(1024), forged])
    await expect(backend.issue({ ...newRequest(['worker']), params: { csr } }, signal)).rejects.toEqual(
      fault('unsupported'),
    )
  await backend.issue({ ...newRequest(['worker']), params: { csr: good } }, signal)
})

it('lists 20,000 serials that openssl reads, and lets other work have its turn meanwhile', async () => {
  const backend = await x509.open((await complete({})) ?? base, host)
  const ids = Array.from({ length: 20_000 }, () => newCredentialId())
  const { body, most } = await listInTurns(backend.revocationList, ids)
  expect(most).toBeLessThanOrEqual(2_000)
  await writeFile(at('long.der'), body)
  const options = { maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await run(
    'openssl',
    ['crl', '-inform', 'DER', '-in', at('long.der'), '-noout', '-text'],
    options,
  )
  expect(stdout.match(/Serial Number: \w+/g)?.length).toBe(20_000)
  expect(stdout).toContain(serialOf(ids[7] ?? '').toUpperCase())
})
