import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { readCertificate } from '../support/ssh-certificate.ts'
import { type SshServer, startSshServer } from '../support/ssh-server.ts'

const run = promisify(execFile)
let app: TestApp
let server: SshServer
let agent: NewAgent

const list = async () => {
  const reply = await fetch(`${app.url}/backends/ssh/revoked`)
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/octet-stream'])
  return Buffer.from(await reply.arrayBuffer())
}
const issue = async (body: Record<string, unknown> = {}) => {
  const asked = { backend: 'ssh', scopes: ['deploy'], ttl: '5m', ...body }
  return (await agent.client.post('/api/v1/credentials', asked)).body
}
const isRefused = /Permission denied \(publickey\)/

beforeAll(async () => {
  app = await startApp()
  const config = {
    principals: ['deploy', 'deploy-db', 'backup'],
    extensions: ['permit-pty', 'permit-port-forwarding'],
    source_addresses: ['127.0.0.0/8', 'fd00::1/8'],
  }
  await app.newBackend({ type: 'ssh', name: 'ssh', config })
  const stored = (await app.admin('GET', '/v1/admin/backends/ssh')).body.config
  expect(stored.ca_key).toBe('[redacted]')
  server = await startSshServer(stored.ca_public_key, ['deploy', 'deploy-db'], await list())
  agent = await app.newAgent({ scopes: ['ssh'] })
})
afterAll(async () => {
  await server?.stop()
  await app?.close()
})

describe('a credential of kind ssh', () => {
  test('logs in, and sshd logs the credential and its agent', async () => {
    const issued = await issue()
    expect(await server.login(issued, 'echo $((6*7))')).toBe('42')
    expect(server.logged()).toContain(`ID "${issued.id} ${agent.name}" (serial `)
    const text = await readCertificate(issued.fields.certificate)
    expect(text).toMatch(/Type: ssh-ed25519-cert-v01@openssh.com user certificate/)
    expect(text).toMatch(/Principals: \n\s+deploy\n\s+Critical/)
    expect(text).toMatch(
      /source-address 127.0.0.0\/8,fd00::\/8\n\s+Extensions: \n\s+permit-port-forwarding\n\s+permit-pty/,
    )
  })

  test('names only the principals of its scopes, and sshd refuses any other', async () => {
    const all = await issue({ scopes: ['deploy*'] })
    expect(await readCertificate(all.fields.certificate)).toMatch(/\n\s+deploy\n\s+deploy-db\n\s+Critical/)
    await expect(server.login(await issue({ scopes: ['backup'] }), 'true')).rejects.toThrow(isRefused)
    const narrow = await app.newAgent({ scopes: ['ssh:backup'] })
    const asked = await narrow.client.post('/api/v1/credentials', { backend: 'ssh', scopes: ['deploy'] })
    expect([asked.status, asked.body.error.code]).toEqual([403, 'scope_not_allowed'])
    const own = await narrow.client.post('/api/v1/credentials', { backend: 'ssh' })
    await expect(server.login(own.body, 'true')).rejects.toThrow(isRefused)
    // A wildcard without a principal, and a name of more than one part.
    for (const scopes of [['nobody'], ['x*'], ['deploy:x'], []])
      expect((await issue({ scopes })).error).toBeDefined()
  })

  test('is refused after its end', async () => {
    // On a slow machine one may expire before the login.
    const issued = await eventually(async () => {
      const issued = await issue({ ttl: '3s' })
      expect(await server.login(issued, 'echo in')).toBe('in')
      return issued
    })
    const refused = eventually(async () => {
      await expect(server.login(issued, 'true')).rejects.toThrow(isRefused)
      return Date.now()
    })
    expect(await refused).toBeGreaterThanOrEqual(Math.floor(Date.parse(issued.expires_at) / 1000) * 1000)
    expect(server.logged()).toContain('Certificate invalid: expired')
  })

  test('is refused by the list of revoked ones, and no other is; an open session goes on', async () => {
    const [one, other] = [await issue(), await issue()]
    // A connection that its holder shares between sessions.
    const shared = ['-S', join(server.directory, 'shared'), ...(await server.argsFor(one))]
    const session = spawn('ssh', ['-M', ...shared, 'cat'], { stdio: ['pipe', 'pipe', 'ignore'] })
    session.stdin.write('before\n')
    await once(session.stdout, 'data')
    const ended = await agent.client.delete(`/api/v1/credentials/${one.id}`)
    expect(ended.body.upstream).toBe('expires')
    await eventually(async () => {
      await server.revoke(await list())
      await expect(server.login(one, 'true')).rejects.toThrow(isRefused)
    })
    expect(server.logged()).toMatch(/revoked by file/)
    expect(await server.login(other, 'echo in')).toBe('in')
    session.stdin.write('after\n')
    expect(String((await once(session.stdout, 'data'))[0])).toBe('after\n')
    expect((await run('ssh', [...shared, 'echo again'])).stdout).toBe('again\n')
    session.stdin.end()
    await once(session, 'exit')
    await expect(run('ssh', [...shared, 'true'])).rejects.toThrow(isRefused)
  })

  test.each(['ed25519', 'ecdsa', 'rsa'])('certifies a key of the caller: %s', async (type) => {
    const key = join(server.directory, `caller-${type}`)
    await run('ssh-keygen', ['-q', '-t', type, '-N', '', '-f', key])
    const { fields } = await issue({ params: { public_key: await readFile(`${key}.pub`, 'utf8') } })
    expect(Object.keys(fields)).toEqual(['certificate'])
    expect(await server.login({ fields }, 'echo in', key)).toBe('in')
    await expect(server.login({ fields }, 'echo in')).rejects.toThrow(isRefused)
  })

  test('runs only its command, from its addresses, with its extensions', async () => {
    const forced = await issue({ params: { force_command: 'echo "$SSH_ORIGINAL_COMMAND"', extensions: [] } })
    expect(await server.login(forced, 'rm -rf /nowhere')).toBe('rm -rf /nowhere')
    expect(await readCertificate(forced.fields.certificate)).toMatch(/Extensions: \(none\)/)
    const far = await issue({ params: { source_addresses: ['127.9.0.0/16'] } })
    await expect(server.login(far, 'true')).rejects.toThrow(isRefused)
    for (const params of [
      { source_addresses: ['10.0.0.0/8'] },
      { source_addresses: ['126.0.0.0/7'] },
      { source_addresses: ['not'] },
      { extensions: ['permit-agent-forwarding'] },
      { force_command: 'a\nb' },
      { public_key: 'ssh-ed25519 AAAA' },
    ])
      expect((await issue({ params })).error?.code).toBe('invalid_request')
  })
})
