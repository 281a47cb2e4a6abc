import type { PluginProtocol, PluginRuntime } from '../../domain/plugin.ts'
import type { Description } from '../description.ts'

/** A plugin as the store has it: bytes that an administrator pinned, and what they said of themselves then. */
export interface PinnedPlugin {
  /** The name of its kind here; `description.type` is what it calls itself. */
  readonly name: string
  readonly version: string
  readonly protocol: PluginProtocol
  /** Of the artefact, lower-case hex. */
  readonly sha256: string
  readonly description: Description
  /** Makes a private copy of the artefact, whose bytes have this hash. Throws `BackendError` (`misconfigured`) where they have not. */
  prepare(): Promise<Program>
}

/** A copy that nobody else can change, to start processes from. */
export interface Program {
  /** `node`: a module for Node, run under its permission model. */
  readonly runtime: PluginRuntime
  /** What to start; an absolute path. */
  readonly entry: string
  /** The folder that a module may read; it holds `entry`. */
  readonly folder: string
  /** Removes the copy. */
  close(): Promise<void>
}
