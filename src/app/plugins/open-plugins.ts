import { existsSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { SYSTEM } from '../../core/caller.ts'
import type { Denials } from '../../core/parts.ts'
import { ConfigError } from '../../domain/fault.ts'
import type { Log } from '../../log/log.ts'
import { removeAbandonedPlaces } from '../../plugins/process/place.ts'
import type { Store } from '../../store/open.ts'
import { cleanUp } from '../drafts.ts'
import { removeStaged, requirePrivate } from './artefacts.ts'
import { createPinnedKinds, type PinnedKinds } from './pinned-kinds.ts'
import { pluginProcesses } from './processes.ts'

/** Also removes what killed commands left. Throws `ConfigError` if others could change what lies in `plugin_dir`. A directory that does not exist has no plugins. */
export async function openPlugins(
  config: Config,
  {
    denials,
    log,
    store,
  }: { readonly denials: Denials; readonly log: Log; readonly store: Pick<Store, 'plugins'> },
): Promise<PinnedKinds> {
  const { dataDir, pluginDir, pluginUser } = config
  await cleanUp(dataDir, log)
  if (existsSync(pluginDir)) {
    await requirePrivate(pluginDir).catch((error: Error) => {
      throw new ConfigError([{ source: 'plugin_dir', message: error.message }])
    })
    const pinned = (await store.plugins.list()).map(({ sha256 }) => sha256)
    await removeStaged(pluginDir, new Set(pinned)).catch((error: unknown) =>
      log.warn({ err: error }, 'what a killed mayfly plugin add left in plugin_dir was not removed'),
    )
  }
  await removeAbandonedPlaces().catch((error: unknown) =>
    log.warn(
      { err: error },
      'what plugins of a killed server left in the temporary directory was not removed',
    ),
  )
  return createPinnedKinds({
    directory: pluginDir,
    isShared: pluginUser !== undefined,
    processes: pluginProcesses(config, log),
    onFailed: (plugin, reason, backend) => {
      log.error({ plugin, backend, reason }, 'a plugin failed')
      const details = { plugin, reason }
      denials.record(SYSTEM, { action: 'plugin.failed', outcome: 'failed', backend, details })
    },
  })
}
