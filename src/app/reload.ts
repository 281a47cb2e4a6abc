import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { kinds } from '../backends/index.ts'
import type { Kind } from '../backends/kind.ts'
import type { Config } from '../config/config.ts'
import type { Loaded } from '../config/load.ts'
import { FIELDS } from '../config/schema.ts'
import { type ShownSetting, shownSettings } from '../config/show-settings.ts'
import { boundSteps } from '../core/agents/agent-bounds.ts'
import type { Core, Settings } from '../core/context.ts'
import { announceNode, type NodeState } from '../core/server/nodes.ts'
import type { NextConfiguration, ReadConfiguration } from '../core/server/reload-server.ts'
import { ConfigError, type Fault } from '../domain/fault.ts'
import { loopbackForms } from '../domain/network/loopback.ts'
import { relyingPartyOf } from '../domain/people/relying-party.ts'
import type { Log, Logger } from '../log/log.ts'
import { type Recipes, readRecipes } from './recipes.ts'
import { describeNode } from './this-node.ts'
import { VERSION } from './version.ts'

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

/** The reload of one server. */
export interface Reload {
  readonly read: ReadConfiguration
  /** What applies settings that are marked `x-reload`. */
  add(part: Reloadable): void
  /** What this node is now, and how the others hear of it. */
  self(): NodeState
  /** The settings in force on this node. */
  settings(): readonly ShownSetting[]
  announce(): Promise<void>
}

interface ReloadParts {
  readonly core: Core
  /** Those of `core`, whose fields are replaced. */
  readonly settings: Settings
  readonly recipes: Recipes
  /** What a kind is here: traces wrap it. */
  readonly kindOf: (kind: Kind) => Kind
  readonly log: Logger
}

export function createReload(
  source: ConfigSource,
  { core, settings, recipes: begun, kindOf, log }: ReloadParts,
): Reload {
  const nodeId = core.ids.body()
  let current = source.loaded
  const recipes = reloadRecipes(core, begun, kindOf)
  const parts: Reloadable[] = [
    reloadSettings(core, settings),
    recipes.prepare,
    async ({ logLevel }) => ({ apply: () => log.setLevel(logLevel) }),
  ]
  const self = () => describeNode(nodeId, current, recipes.current())
  const announce = () => announceNode(core, self())
  return {
    add: (part) => void parts.push(part),
    self,
    settings: () => shownSettings(current),
    announce,
    read: async () => {
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
          void announce().catch((error: unknown) =>
            log.warn({ err: error }, 'the other nodes do not know of the reload yet'),
          )
        },
      }
    },
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

/** Kinds that are recipes in `recipes_dir` (ADR 0035). */
export const openRecipes = ({ recipesDir }: Config, before?: Recipes) =>
  readRecipes(recipesDir, (path) => readFile(path), before)

export function nameFaults({ faults }: Recipes, log: Log): void {
  for (const { source, message } of faults)
    log.error({ source, fault: message }, 'a recipe is faulty: it is left out, and its backends fail')
}

function reloadRecipes(
  core: Core,
  begun: Recipes,
  kindOf: (kind: Kind) => Kind,
): { readonly prepare: Reloadable; current(): Recipes } {
  let current = begun
  const prepare: Reloadable = async (next) => {
    const recipes = await openRecipes(next, current)
    const isSame = isDeepStrictEqual([...recipes.byDigest.keys()], [...current.byDigest.keys()])
    return {
      changed: isSame ? [] : ['recipes_dir'],
      skipped: recipes.faults,
      apply: () => {
        current = recipes
        nameFaults(recipes, core.log)
        if (!isSame) core.backends.replaceKinds([...kinds, ...recipes.kinds].map(kindOf))
      },
    }
  }
  return { prepare, current: () => current }
}

/** Policies and limits: each use case reads them when it needs them. */
function reloadSettings(core: Core, settings: Settings): Reloadable {
  return async (config) => {
    const next = settingsOf(config)
    return {
      steps: await boundSteps({ store: core.store, settings: next }),
      apply: () => {
        Object.assign(settings, next)
        core.callers.forget()
      },
    }
  }
}

/** For an app that was given its configuration as a value. */
export function unchanging(config: Config): ConfigSource {
  const loaded: Loaded = { config, origins: {}, given: {} }
  return { loaded, load: async () => loaded }
}

/** What use cases may know of the configuration: everything but its secrets. */
export function settingsOf(all: Config): Settings {
  const { databaseUrl: _, masterKey: __, pluginEnv: ___, notify: ____, ...config } = all
  const { issuer, previousIssuers } = config
  return {
    ...config,
    issuerNames: [issuer, ...previousIssuers].flatMap(loopbackForms),
    relyingParty: relyingPartyOf(issuer),
    operatorLogin: config.console === 'off' ? 'off' : config.operatorLogin,
    version: VERSION,
  }
}
