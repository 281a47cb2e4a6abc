import { setImmediate } from 'node:timers/promises'
import type { RevocationList, RevokedCredential } from '../../src/backends/kind.ts'

/** The list of these credentials, and how many of them were read at most before other work had its turn: the first may be two slices. */
export async function listInTurns(
  revocationList: ((revoked: readonly RevokedCredential[]) => Promise<RevocationList>) | undefined,
  ids: readonly string[],
): Promise<{ readonly body: Uint8Array; readonly most: number }> {
  let most = 0
  let read = 0
  const revoked = ids.map((id) => ({
    get credentialId() {
      read += 1
      most = Math.max(most, read)
      return id
    },
    endedAt: 1e12,
  }))
  let isDone = false
  const list = revocationList?.(revoked).finally(() => {
    isDone = true
  })
  while (!isDone && list !== undefined) {
    await setImmediate()
    read = 0
  }
  return { body: (await list)?.body ?? new Uint8Array(), most }
}
