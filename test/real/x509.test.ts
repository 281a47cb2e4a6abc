import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { startTlsServer, type TlsServer } from '../support/tls-server.ts'

const run = promisify(execFile)
const SPIFFE = 'spiffe://example.com/ns/web'
let app: TestApp
let server: TlsServer
let agent: NewAgent
const at = (name: string) => join(server.directory, name)

const list = async () => {
  const reply = await fetch(`${app.url}/backends/tls/revoked`)
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/pkix-crl'])
  return Buffer.from(await reply.arrayBuffer())
}
const issue = async (body: Record<string, unknown> = {}) => {
  const asked = { backend: 'tls', scopes: ['worker'], ttl: '5m', ...body }
  return (await agent.client.post('/api/v1/credentials', asked)).body
}
/** `openssl verify` with the chain and, as the last word says, its revocation list. */
async function verify(issued: { fields: Record<string, string> }, ...args: string[]) {
  await writeFile(at('leaf.pem'), issued.fields['certificate'] ?? '')
  const fixed = ['-x509_strict', '-CAfile', at('ca.crt'), '-crl_check', '-CRLfile', at('crl.pem')]
  return run('openssl', ['verify', ...fixed, ...args, at('leaf.pem')]).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }) => stdout + stderr,
  )
}

beforeAll(async () => {
  app = await startApp()
  const config = {
    names: ['worker', 'worker-2.example.com', '*.svc.example.com', 'spiffe://example.com/ns/*'],
    usage: 'both',
  }
  await app.newBackend({ type: 'x509', name: 'tls', config })
  const stored = (await app.admin('GET', '/v1/admin/backends/tls')).body.config
  expect(stored.ca_key).toBe('[redacted]')
  server = await startTlsServer(stored.ca_certificate, await list())
  agent = await app.newAgent({ scopes: ['tls'] })
})
afterAll(async () => {
  await server?.stop()
  await app?.close()
})

describe('a credential of kind x509', () => {
  test('is accepted by nginx, which sees its name and its serial', async () => {
    const issued = await issue()
    const { fields } = issued
    const leaf = new X509Certificate(fields.certificate)
    expect(await server.request(issued)).toEqual({
      ...{ status: 200, verify: 'SUCCESS', subject: 'CN=worker', serial: leaf.serialNumber },
    })
    expect(await server.request()).toMatchObject({ verify: 'NONE' })
    expect(fields.ca).toBe(await readFile(at('ca.crt'), 'utf8'))
  })

  test('stands the strict checks of openssl, for clients and servers, with the names of its scopes alone', async () => {
    const issued = await issue({ scopes: ['worker*', 'a.b.svc.example.com', SPIFFE] })
    for (const purpose of ['sslclient', 'sslserver'])
      expect(await verify(issued, '-purpose', purpose)).toMatch(/: OK\n$/)
    const leaf = new X509Certificate(issued.fields.certificate)
    expect(leaf.subjectAltName).toBe(
      `DNS:worker, DNS:worker-2.example.com, DNS:a.b.svc.example.com, URI:${SPIFFE}`,
    )
    expect(leaf.ca).toBe(false)
    const { stdout } = await run('openssl', ['x509', '-noout', '-text', '-in', at('leaf.pem')])
    expect(stdout).toContain('URI:https://mayfly.test/backends/tls/revoked')
    const spiffe = await issue({ scopes: [SPIFFE] })
    expect(await verify(spiffe)).toMatch(/: OK\n$/)
    expect(new X509Certificate(spiffe.fields.certificate).subject).toBeUndefined()
    expect(await server.request(spiffe)).toMatchObject({ verify: 'SUCCESS', subject: '' })
  })

  test('never has a name outside its scopes', async () => {
    const narrow = await app.newAgent({ scopes: ['tls:spiffe://example.com/ns/*'] })
    const ask = (scopes: string[]) => narrow.client.post('/api/v1/credentials', { backend: 'tls', scopes })
    expect((await ask(['worker'])).body.error.code).toBe('scope_not_allowed')
    expect((await ask([SPIFFE])).status).toBe(201)
    for (const scope of [
      'spiffe://example.org/ns/web',
      'spiffe://example.com/x',
      'svc.example.com',
      'other',
      '',
    ])
      expect((await issue({ scopes: [scope] })).error).toBeDefined()
    // Two SPIFFE IDs, and none at all.
    expect((await issue({ scopes: [SPIFFE, `${SPIFFE}-2`] })).error.code).toBe('invalid_request')
    expect((await issue({ scopes: [] })).error.code).toBe('invalid_request')
  })

  test('is refused after its end', async () => {
    // On a slow machine one may expire before the request.
    const issued = await eventually(async () => {
      const issued = await issue({ ttl: '2s' })
      expect(await server.request(issued)).toMatchObject({ verify: 'SUCCESS' })
      return issued
    })
    await eventually(async () => {
      const { verify: said } = await server.request(issued)
      expect(said).toBe('FAILED:certificate has expired')
    })
    expect(Date.now()).toBeGreaterThanOrEqual(Math.floor(Date.parse(issued.expires_at) / 1000) * 1000)
  })

  test('is refused by the list of revoked ones, and no other is', async () => {
    const [one, other] = [await issue(), await issue()]
    const ended = await agent.client.delete(`/api/v1/credentials/${one.id}`)
    expect(ended.body.upstream).toBe('expires')
    await eventually(async () => {
      await server.revoke(await list())
      expect(await server.request(one)).toMatchObject({ verify: 'FAILED:certificate revoked' })
    })
    expect(await server.request(other)).toMatchObject({ verify: 'SUCCESS' })
    expect(await verify(one)).toContain('certificate revoked')
    expect(await verify(other)).toMatch(/: OK\n$/)
    const { stdout } = await run('openssl', [
      'crl',
      '-in',
      at('crl.pem'),
      '-noout',
      '-text',
      '-CAfile',
      at('ca.crt'),
    ])
    expect(stdout).toContain(`Serial Number: ${new X509Certificate(one.fields.certificate).serialNumber}`)
    expect(stdout).toMatch(/X509v3 CRL Number/)
  })

  test.each([
    ['P-384', ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384']],
    ['RSA', ['-newkey', 'rsa:2048']],
    ['Ed25519', ['-newkey', 'ed25519']],
  ])('certifies the key of a request, and none of its names: %s', async (name, algorithm) => {
    const key = at(`${name}.key`)
    await run('openssl', [
      ...['req', '-new', ...algorithm, '-nodes', '-keyout', key, '-out', at('csr.pem')],
      ...['-subj', '/CN=root', '-addext', 'subjectAltName=DNS:evil.example.com'],
      ...['-addext', 'basicConstraints=critical,CA:TRUE'],
    ])
    const issued = await issue({ params: { csr: await readFile(at('csr.pem'), 'utf8') } })
    expect(Object.keys(issued.fields).sort()).toEqual(['ca', 'certificate'])
    const leaf = new X509Certificate(issued.fields.certificate)
    expect([leaf.subject, leaf.subjectAltName, leaf.ca]).toEqual(['CN=worker', 'DNS:worker', false])
    const answer = await server.request(issued, await readFile(key, 'utf8'))
    expect(answer).toMatchObject({ verify: 'SUCCESS', subject: 'CN=worker' })
  })
})
