import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { makeCertificates } from '../../../test/support/certificates.ts'
import { startIssuer } from '../../../test/support/fakes/issuer.ts'
import { startKubernetes } from '../../../test/support/fakes/kubernetes.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { run } from '../../../test/support/run-program.ts'
import type { Backend, Issued, IssueRequest } from '../kind.ts'
import type { Config } from './config.ts'
import { kubernetes } from './kind.ts'

let directory: string
let settings: Config
let issuer: Awaited<ReturnType<typeof startIssuer>>
let fake: Awaited<ReturnType<typeof startKubernetes>>
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'mayfly-kubernetes-'))
  const { server: tls, ca } = makeCertificates(directory)
  issuer = await startIssuer()
  const namespaces = ['mayfly-agents', 'shop', 'shop-test']
  fake = await startKubernetes({ tls, namespaces, issuer: issuer.url })
  settings = {
    server: fake.url,
    ca: readFileSync(ca, 'utf8'),
    token: fake.login,
    home: 'mayfly-agents',
    namespaces: ['shop', 'shop-test'],
    roles: ['view', 'edit', 'role/deployer'],
    local: true,
  }
})
afterAll(async () => {
  await fake[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

const open = (more: Partial<Config> = {}): Promise<Backend<object>> =>
  kubernetes.open({ ...settings, ...more }, issuer.trust(createTestHost('k8s').host))
const asking = (scopes: string[], options = {}) => newRequest(scopes, options) as IssueRequest<object>

async function kubectl({ fields }: Issued, ...args: string[]) {
  const file = join(directory, 'kubeconfig')
  writeFileSync(file, String(fields?.['kubeconfig']), { mode: 0o600 })
  return run(['kubectl', ...args], { PATH: String(process.env['PATH']), HOME: directory, KUBECONFIG: file })
}
const pods = (namespace: string) => ['--raw', `/api/v1/namespaces/${namespace}/pods`]

const rolesOf = ({ handle }: Issued) =>
  [...fake.bindings.values()]
    .filter(({ subjects }) => subjects[0]?.name === handle?.['name'])
    .map(({ metadata, roleRef }) => `${metadata.namespace}:${roleRef.kind}/${roleRef.name}`)
    .sort()

describe('a credential', () => {
  it('does with kubectl what its scope says and nothing else, until it is revoked', async () => {
    await using backend = await open()
    const issued = await backend.issue(asking(['shop:view']), never())
    expect((await kubectl(issued, 'get', ...pods('shop'))).code).toBe(0)
    expect((await kubectl(issued, 'delete', ...pods('shop'))).stderr).toMatch(/forbidden/i)
    expect((await kubectl(issued, 'get', ...pods('shop-test'))).stderr).toMatch(/forbidden/i)
    await backend.revoke?.(issued.handle ?? {}, never())
    expect((await kubectl(issued, 'get', ...pods('shop'))).stderr).toMatch(/unauthorized|logged in/i)
  })

  it.each([
    [['shop:view'], ['shop:ClusterRole/view']],
    [['shop:role/deployer'], ['shop:Role/deployer']],
    [['shop'], ['shop:ClusterRole/edit', 'shop:ClusterRole/view', 'shop:Role/deployer']],
    [['shop*:view'], ['shop-test:ClusterRole/view', 'shop:ClusterRole/view']],
    [['*:edit'], ['shop-test:ClusterRole/edit', 'shop:ClusterRole/edit']],
    [['shop:view', 'shop:v*'], ['shop:ClusterRole/view']],
    [[], []],
  ])('with the scopes %j has the roles %j', async (scopes, roles) => {
    await using backend = await open()
    const issued = await backend.issue(asking(scopes), never())
    expect(rolesOf(issued)).toEqual(roles)
    // As after a crash: from the id alone.
    await backend.revoke?.({ name: String(issued.handle?.['name']) }, never())
    expect(rolesOf(issued)).toEqual([])
  })

  it.each(['kube-system:view', 'shop:cluster-admin', 'shop:admin*', 'sho'])(
    'is refused for %s, which the backend does not grant',
    async (scope) => {
      await using backend = await open()
      expect(kubernetes.scopes.gives?.(settings, scope)).toBe(false)
      await expect(backend.issue(asking([scope]), never())).rejects.toMatchObject({ fault: 'unsupported' })
    },
  )

  it('has a token of at least ten minutes, and of the lifetime asked beyond that', async () => {
    await using backend = await open()
    const short = await backend.issue(asking(['shop:view'], { ttlMs: 30_000 }), never())
    expect(short.upstreamExpiresAt).toBeGreaterThan(Date.now() + 590_000)
    const request = asking(['shop:view'], { ttlMs: 3_600_000 })
    const long = await backend.issue(request, never())
    expect(long.upstreamExpiresAt).toBeLessThanOrEqual(request.expiresAt)
    expect(long.upstreamExpiresAt).toBeGreaterThan(request.expiresAt - 3_000)
  })
})

describe('a failure', () => {
  it('after the first request leaves nothing behind', async () => {
    const before = fake.accounts.size
    fake.bindable.delete('view')
    await using backend = await open()
    await expect(backend.issue(asking(['shop']), never())).rejects.toMatchObject({ fault: 'denied' })
    fake.bindable.add('view')
    expect(fake.accounts.size).toBe(before)
    expect([...fake.bindings.values()].filter(({ roleRef }) => roleRef.name === 'edit')).toEqual([])
  })

  it('that cannot be undone is left to the revocation', async () => {
    fake.forbidden.add('create serviceaccounts/token').add('delete serviceaccounts')
    await using backend = await open()
    const request = asking(['shop:view'])
    await expect(backend.issue(request, never())).rejects.toMatchObject({ fault: 'unavailable' })
    fake.forbidden.clear()
    await backend.revoke?.(backend.recover?.(request.credentialId) ?? {}, never())
    expect([...fake.accounts.keys()].some((key) => key.endsWith(request.credentialId.slice(5)))).toBe(false)
  })

  it('of a wrong address is not taken for "gone"', async () => {
    await using backend = await open()
    const { handle = {} } = await backend.issue(asking(['shop:view']), never())
    fake.interrupt(`DELETE /api/v1/namespaces/mayfly-agents/serviceaccounts/${handle['name']}`, () => ({
      status: 404,
      body: '404 page not found',
    }))
    await expect(backend.revoke?.(handle, never())).rejects.toMatchObject({ fault: 'misconfigured' })
    await expect(backend.revoke?.({ name: 'default' }, never())).rejects.toThrow('does not name')
    await backend.revoke?.(handle, never())
  })
})

describe('the check', () => {
  const check = async (more: Partial<Config> = {}) => {
    await using backend = await open(more)
    return backend.check(never())
  }
  it('names what is missing, and leaves nothing behind', async () => {
    const before = [fake.accounts.size, fake.bindings.size]
    expect(await check()).toEqual([])
    for (const right of ['delete serviceaccounts', 'create serviceaccounts/token', 'delete rolebindings']) {
      fake.forbidden.add(right)
      await expect(check()).rejects.toThrow(right)
      fake.forbidden.clear()
    }
    await expect(check({ roles: ['cluster-admin'] })).rejects.toThrow(
      'cannot bind cluster-admin in the namespace shop',
    )
    await expect(check({ namespaces: ['nowhere'] })).rejects.toThrow('in the namespace nowhere')
    await expect(check({ home: 'nowhere' })).rejects.toThrow('does not know the namespace')
    await expect(check({ token: 'x' })).rejects.toThrow('refused the login')
    await expect(check({ audience: 'kubernetes' })).rejects.toThrow('one of "token"')
    await expect(check({ client_key: 'x' })).rejects.toThrow('"client_certificate"')
    await expect(check({ namespaces: ['shop', settings.home] })).rejects.toThrow('must not include "home"')
    const { ca: _, ...untrusting } = settings
    await expect(
      kubernetes.open(untrusting, createTestHost('x').host).then((one) => one.check(never())),
    ).rejects.toMatchObject({ fault: 'misconfigured' })
    expect([fake.accounts.size, fake.bindings.size]).toEqual(before)
  })

  it('passes without a stored key, where the API server trusts Mayfly', async () => {
    const { token: _, ...keyless } = settings
    const trusting = issuer.trust(createTestHost('k8s').host)
    await using backend = await kubernetes.open({ ...keyless, audience: 'kubernetes' }, trusting)
    expect(await backend.check(never())).toEqual([])
    await using other = await kubernetes.open({ ...keyless, audience: 'other' }, trusting)
    await expect(other.check(never())).rejects.toMatchObject({ fault: 'denied' })
  })
})
