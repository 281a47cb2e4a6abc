import type { Revocations } from '../../domain/backend.ts'
import type { Core } from '../context.ts'
import type { LastRevocations } from '../parts.ts'

export function createLastRevocations(core: Pick<Core, 'store'>): LastRevocations {
  let unwritten = new Map<string, Revocations>()
  let writing = new Map<string, Revocations>()
  const add = (uid: string, more: Revocations) => void unwritten.set(uid, { ...unwritten.get(uid), ...more })
  return {
    succeeded: (uid, at) => add(uid, { lastSuccess: at }),
    failed: (uid, lastFailure) => add(uid, { lastFailure }),
    async all() {
      const all = new Map(await core.store.backends.lastRevocations())
      for (const known of [writing, unwritten])
        for (const [uid, newer] of known) all.set(uid, { ...all.get(uid), ...newer })
      return all
    },
    async flush() {
      if (unwritten.size === 0) return
      writing = unwritten
      unwritten = new Map()
      try {
        await core.store.commit(
          [...writing].flatMap(([uid, known]) => core.store.backends.recordRevocations(uid, known)),
        )
      } catch {
        for (const [uid, older] of writing) unwritten.set(uid, { ...older, ...unwritten.get(uid) })
      }
      writing = new Map()
    },
  }
}
