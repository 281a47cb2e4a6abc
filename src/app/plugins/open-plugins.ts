import { existsSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/fault.ts'
import { SYSTEM } from '../../core/caller.ts'
import type { Denials } from '../../core/parts.ts'
import type { Log } from '../../log/log.ts'
import { removeAbandonedPlaces } from '../../plugins/place.ts'
import { requirePrivate } from './artefacts.ts'
import { createPinnedKinds, type PinnedKinds } from './pinned-kinds.ts'
import { pluginProcesses } from './processes.ts'

/** Throws `ConfigError` if others could change what lies in `plugin_dir`. A directory that does not exist has no plugins. */
export async function openPlugins(
  config: Config,
  { denials, log }: { readonly denials: Denials; readonly log: Log },
): Promise<PinnedKinds> {
  const { pluginDir, pluginUser } = config
  if (existsSync(pluginDir))
    await requirePrivate(pluginDir).catch((error: Error) => {
      throw new ConfigError([{ source: 'plugin_dir', message: error.message }])
    })
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
