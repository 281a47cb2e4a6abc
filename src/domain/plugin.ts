/** A plugin as the store has it: the bytes that an administrator pinned. Its name is that of its kind here. */
export interface StoredPlugin {
  readonly name: string
  /** The plugin's own. */
  readonly version: string
  readonly protocol: PluginProtocol
  readonly runtime: PluginRuntime
  /** Of the artefact, lower-case hex. */
  readonly sha256: string
  readonly bytes: number
  /** Where the artefact came from, in the words of the command that added it. */
  readonly origin: string
  readonly description: PluginDescription
  /** Epoch ms. */
  readonly addedAt: number
}

export type PluginProtocol = (typeof PLUGIN_PROTOCOLS)[number]
export type PluginRuntime = (typeof PLUGIN_RUNTIMES)[number]

export const PLUGIN_PROTOCOLS = ['mayfly.plugin.v1', 'creddy.plugin.v1'] as const
/** `node`: a module, or a package of modules, for Node. */
export const PLUGIN_RUNTIMES = ['executable', 'node'] as const

/** What the plugin said of itself when it was added; more of it concerns only the process boundary. */
export interface PluginDescription {
  /** What it calls itself: also the name of its kind, unless it was added under another. */
  readonly type: string
  readonly title: string
  readonly version: string
}

/** An artefact that lies in the directory of plugins under its hash. */
export type PluginArtefact = Pick<StoredPlugin, 'sha256' | 'runtime'>

export const SHA256_PATTERN = '^[0-9a-f]{64}$'
/** A name that every route, command line and file can have. */
export const PLUGIN_NAME_PATTERN = '^[a-z][a-z0-9-]{0,39}$'
