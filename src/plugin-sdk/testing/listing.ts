import assert from 'node:assert/strict'
import type { Backend, Listed } from '../../backends/kind.ts'
import { never, newRequest, type OpenKind } from './open-kind.ts'
import type { Runner } from './runner.ts'

export function describeListing({ it }: Runner, get: () => OpenKind): void {
  it('lists what carries our names, a page at a time, and nothing that was revoked', async () => {
    const { backend, scopes } = get()
    if (backend.list === undefined || backend.revoke === undefined) return
    const requests = [newRequest(scopes), newRequest(scopes), newRequest(scopes)]
    const ids = requests.map(({ credentialId }) => credentialId)
    for (const request of requests) await backend.issue(request, never())
    assert.deepEqual(await listedOf(backend, ids), [...ids].sort())
    for (const { credentialId, handle } of await listAll(backend))
      if (ids.includes(credentialId)) await backend.revoke(handle, never())
    assert.deepEqual(await listedOf(backend, ids), [])
  })
}

async function listAll(backend: Backend): Promise<Listed[]> {
  const all: Listed[] = []
  for (let after: string | undefined; ; ) {
    const page = await backend.list?.(after, never())
    all.push(...(page?.items ?? []))
    if (page?.next === undefined) return all
    assert.notEqual(page.next, after)
    after = page.next
  }
}

async function listedOf(backend: Backend, ids: readonly string[]): Promise<string[]> {
  const all = await listAll(backend)
  return all
    .map(({ credentialId }) => credentialId)
    .filter((id) => ids.includes(id))
    .sort()
}
