import type { Core } from '../core/context.ts'

/** Clears away some of what has run out. Returns whether there is more. */
export async function tidy(core: Pick<Core, 'store'>): Promise<boolean> {
  const { store } = core
  const now = store.now()
  await store.commit(store.tokens.tidy(now), { urgent: true, bulk: true })
  return store.tokens.isUntidy(now)
}
