import { expect, it } from 'vitest'
import type { Backend, Listed } from '../../src/backends/kind.ts'
import { never, newRequest, type OpenKind } from './open-kind.ts'

export function describeListing(get: () => OpenKind): void {
  it('lists what carries our names, a page at a time, and nothing that was revoked', async () => {
    const { backend, scopes } = get()
    if (backend.list === undefined || backend.revoke === undefined) return
    const requests = [newRequest(scopes), newRequest(scopes), newRequest(scopes)]
    const ids = requests.map(({ credentialId }) => credentialId)
    for (const request of requests) await backend.issue(request, never())
    expect(await listedOf(backend, ids)).toEqual([...ids].sort())
    for (const { credentialId, handle } of await listAll(backend))
      if (ids.includes(credentialId)) await backend.revoke(handle, never())
    expect(await listedOf(backend, ids)).toEqual([])
  })
}

async function listAll(backend: Backend): Promise<Listed[]> {
  const all: Listed[] = []
  for (let after: string | undefined; ; ) {
    const page = await backend.list?.(after, never())
    all.push(...(page?.items ?? []))
    if (page?.next === undefined) return all
    expect(page.next).not.toBe(after)
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
