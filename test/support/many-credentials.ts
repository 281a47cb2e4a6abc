import type { Core } from '../../src/core/context.ts'
import { someCredential } from './store.ts'

/** Stores `count` living credentials of this backend, without the work of issuing them. */
export async function addCredentials(
  { store }: Pick<Core, 'store'>,
  backend: string,
  agent: { readonly id: string; readonly name: string },
  count: number,
): Promise<void> {
  const found = await store.backends.findByName(backend)
  if (found === undefined) throw new Error('no such backend')
  const expiresAt = store.now() + 3_600_000
  const issued = { agentId: agent.id, agentName: agent.name, backendUid: found.uid, backend: found.name }
  const rows = Array.from({ length: count }, () =>
    someCredential({ ...issued, revocation: 'none', sealedHandle: null, expiresAt, dueAt: expiresAt }),
  )
  await store.commit(rows.map((row) => store.credentials.insert(row)))
}
