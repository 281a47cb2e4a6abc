import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/config.ts'
import type { Loaded } from '../config/load.ts'
import { FIELDS } from '../config/schema.ts'
import type { NextConfiguration, ReadConfiguration } from '../core/server/reload-server.ts'
import { ConfigError, type Fault } from '../domain/fault.ts'

/** What a part of the server makes of the next configuration. */
export interface Prepared extends Partial<Omit<NextConfiguration, 'apply'>> {
  apply(): void
}

/** Reads and checks all that the settings name, and changes nothing. Throws `ConfigError`. */
export type Reloadable = (next: Config) => Promise<Prepared>

/** Where the configuration comes from. */
export interface ConfigSource {
  readonly loaded: Loaded
  /** Reads it again. Throws `ConfigError`. */
  load(): Promise<Loaded>
}

/** Each of the `parts` applies settings that are marked `x-reload`; a part may be added later. */
export function createReload(source: ConfigSource, parts: readonly Reloadable[]): ReadConfiguration {
  let current = source.loaded
  return async () => {
    const next = await source.load()
    const changed = changesOf(current, next)
    const prepared = await prepareAll(parts, next.config)
    return {
      changed: [...new Set([...changed, ...prepared.flatMap((one) => one.changed ?? [])])],
      skipped: prepared.flatMap((one) => one.skipped ?? []),
      steps: prepared.flatMap((one) => one.steps ?? []),
      apply: () => {
        for (const one of prepared) one.apply()
        current = next
      },
    }
  }
}

/** The settings that are others now. Throws `ConfigError` with those that need a restart. */
function changesOf(current: Loaded, next: Loaded): string[] {
  const changed = FIELDS.filter(({ path }) => !isDeepStrictEqual(current.given[path], next.given[path]))
  const faults: Fault[] = changed
    .filter(({ canReload }) => !canReload)
    .map(({ path }) => needsRestart(next.origins[path] ?? 'default', path))
  const [before, after] = [current, next].map(({ config }) => config.databaseUrl?.reveal())
  if (faults.length === 0 && before !== after)
    faults.push(needsRestart(next.origins['database_url_file'] ?? 'default', 'the database URL'))
  if (faults.length > 0) throw new ConfigError(faults)
  return changed.map(({ path }) => path)
}

export const needsRestart = (source: string, what: string): Fault => ({
  source,
  message: `${what} has changed, which takes effect only with a restart`,
})

/** The faults of all parts, together. */
async function prepareAll(parts: readonly Reloadable[], next: Config): Promise<Prepared[]> {
  const all = await Promise.allSettled(parts.map((prepare) => prepare(next)))
  const faults = all.flatMap((one) => {
    if (one.status === 'fulfilled') return []
    if (one.reason instanceof ConfigError) return one.reason.faults
    throw one.reason
  })
  if (faults.length > 0) throw new ConfigError(faults)
  return all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}
