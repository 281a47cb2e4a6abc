import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Bench, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import { type PostgresProxy, startPostgresProxy } from '../../../test/support/postgres-proxy.ts'
import { flood, startPostgresScript } from '../../../test/support/postgres-script.ts'

let bench: Bench
let proxy: PostgresProxy
let certificate: { key: string; cert: string }

beforeAll(async () => {
  bench = await openBench()
  certificate = await selfSigned('localhost')
  proxy = await startPostgresProxy(bench.server, certificate)
})
afterAll(async () => {
  await bench?.close()
  await proxy?.close()
})

async function selfSigned(name: string): Promise<{ key: string; cert: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
  try {
    const options = ['-x509', '-nodes', '-days', '2', ...curve, ...subject, '-keyout', key, '-out', cert]
    await promisify(execFile)('openssl', ['req', ...options])
    return { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') }
  } finally {
    await rm(folder, { recursive: true })
  }
}

const check = async (overrides: object) =>
  (await bench.open({ port: proxy.port, ...overrides })).check(signal())

describe('TLS to PostgreSQL', () => {
  it('trusts a certificate of the configured authority and name, at the checked address', async () => {
    await check({ host: 'localhost', tls: 'verify-full', ca: certificate.cert })
  })

  it('refuses an authority that is not configured, and another name', async () => {
    const misconfigured = { name: 'BackendError', fault: 'misconfigured' }
    await expect(check({ host: 'localhost', tls: 'verify-full' })).rejects.toMatchObject(misconfigured)
    const ca = certificate.cert
    await expect(check({ host: '127.0.0.1', tls: 'verify-full', ca })).rejects.toMatchObject(misconfigured)
  })

  it('stops reading an endless reply, requested or not', async () => {
    const script = await startPostgresScript(flood)
    const secured = await startPostgresProxy(script, certificate)
    await expect(check({ port: secured.port, tls: 'require' })).rejects.toThrow('too long')
    await secured.close()
    script.close()
    await check({ tls: 'require' })
    proxy.interrupt(flood)
    await vi.waitFor(() => expect(bench.logged()).toContain('too long'), 60_000)
  })

  it('only encrypts when sslmode is require, and tells agents the same', async () => {
    await check({ host: '127.0.0.1', tls: 'require' })
    const backend = await bench.open({ port: proxy.port, tls: 'require' })
    const { fields, handle = {} } = await backend.issue(request([]), signal())
    expect(new URL(String(fields?.['url'])).searchParams.get('sslmode')).toBe('require')
    expect(fields?.['sslmode']).toBe('require')
    await backend.revoke?.(handle, signal())
  })
})
