import { openStoredConfig, sealConfig } from '../../src/core/backends/definition.ts'
import type { Core } from '../../src/core/context.ts'

/** Stores a copy of this backend under each name, in one commit and without asking the upstream. */
export async function copyBackend(core: Core, name: string, copies: readonly string[]): Promise<void> {
  const model = await core.store.backends.findByName(name)
  if (model === undefined) throw new Error('no such backend')
  const config = openStoredConfig(core, model) ?? {}
  const steps = copies.flatMap((copy) => {
    const uid = core.ids.id('backend')
    return core.store.backends.insert({
      ...model,
      uid,
      name: copy,
      sealedConfig: sealConfig(core, uid, config),
    })
  })
  await core.store.commit(steps)
}
