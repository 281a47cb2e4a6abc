import type { Core } from '../core/context.ts'

/** Deletes a slice of expired rows. Returns whether more are left. */
export async function tidy(core: Pick<Core, 'store'>): Promise<boolean> {
  const { store } = core
  const now = store.now()
  await store.commit(store.tokens.tidy(now), { urgent: true, bulk: true })
  return store.tokens.isUntidy(now)
}
