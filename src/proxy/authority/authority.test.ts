import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createAuthority } from './authority.ts'

const directory = mkdtempSync(join(tmpdir(), 'mf-authority-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const HOUR = 3_600_000

test.each([
  ['api.example.com', 'DNS:api.example.com', ['-verify_hostname', 'api.example.com']],
  ['127.0.0.1', 'IP Address:127.0.0.1', ['-verify_ip', '127.0.0.1']],
  ['::1', 'IP Address:0:0:0:0:0:0:0:1', ['-verify_ip', '::1']],
  [`${'long.'.repeat(20)}example`, undefined, []],
])('makes a leaf for %s that OpenSSL accepts by its strict rules', async (host, name, options) => {
  const authority = createAuthority(Date.now)
  const { cert, key } = await authority.leafFor(host)
  const file = (as: string, text: string) => {
    writeFileSync(join(directory, as), text)
    return join(directory, as)
  }
  const ca = file('ca.pem', authority.certificate)
  const leaf = file('leaf.pem', cert)
  const args = ['verify', '-x509_strict', '-purpose', 'sslserver', ...options, '-CAfile', ca, leaf]
  expect(String(execFileSync('openssl', args))).toContain(': OK')
  const read = new X509Certificate(cert)
  if (name !== undefined) expect(read.subjectAltName).toBe(name)
  expect(read.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
  expect(Date.parse(read.validTo) - Date.parse(read.validFrom)).toBe(24 * HOUR)
  expect(key).toContain('PRIVATE KEY')
})

test('makes a leaf once for each host, and anew before it ends', async () => {
  let now = Date.now()
  const authority = createAuthority(() => now)
  const first = await authority.leafFor('a.example')
  expect(await authority.leafFor('a.example')).toBe(first)
  now += 11 * HOUR
  expect(await authority.leafFor('a.example')).toBe(first)
  now += 2 * HOUR
  const second = await authority.leafFor('a.example')
  expect(second).not.toBe(first)
  expect(Date.parse(new X509Certificate(second.cert).validTo)).toBeGreaterThan(now + 23 * HOUR)
})

test('gives two runs two authorities', async () => {
  const [one, other] = [createAuthority(Date.now), createAuthority(Date.now)]
  const issuer = (pem: string) => new X509Certificate(pem).issuer
  expect(issuer(one.certificate)).not.toBe(issuer(other.certificate))
  const leaf = new X509Certificate((await one.leafFor('a.example')).cert)
  expect(leaf.verify(new X509Certificate(one.certificate).publicKey)).toBe(true)
  expect(leaf.verify(new X509Certificate(other.certificate).publicKey)).toBe(false)
})

test.each(['', '*', 'a b', 'a\0b', '-a', 'a/../b', 'ä.example', 'x'.repeat(254)])(
  'refuses %j, which is no host',
  async (host) => {
    await expect(createAuthority(Date.now).leafFor(host)).rejects.toThrow('no host')
  },
)

test('keeps a bounded number of leaves', async () => {
  const authority = createAuthority(Date.now)
  const first = await authority.leafFor('first.example')
  for (let n = 0; n < 1_000; n += 1) await authority.leafFor(`h${n}.example`)
  expect(await authority.leafFor('first.example')).not.toBe(first)
})
