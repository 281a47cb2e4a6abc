import type { Kind } from '../../backends/kind.ts'
import type { PluginHost } from '../../core/parts.ts'
import { BackendError } from '../../domain/backend-error.ts'
import type { PluginDescription, PluginProtocol, StoredPlugin } from '../../domain/plugin.ts'
import type { Description } from '../../plugins/description.ts'
import type { PinnedPlugin, Program } from '../../plugins/process/program.ts'
import { discardArtefact, type PrepareOptions, prepareArtefact } from './artefacts.ts'

/** What starts processes of plugins. */
export interface PluginProcesses {
  /** Starts the program once and asks what it is. Throws `BackendError`. */
  describePlugin(program: Program, protocol: PluginProtocol): Promise<Description>
  /** `onEnd` is called when a process of a backend ends that nobody stopped. */
  kindOfPlugin(plugin: PinnedPlugin, onEnd: (backend: string, how: string) => void): Kind
}

export interface PinnedKindsParts extends PrepareOptions {
  readonly processes: PluginProcesses
  /** Called with the reason when a plugin cannot be started or used, and when its process has ended. */
  onFailed(name: string, reason: string, backend?: string): void
}

export interface PinnedKinds {
  readonly host: PluginHost
  /** The kinds of these plugins. One whose pin has not changed stays the same object. */
  kindsOf(plugins: readonly StoredPlugin[]): readonly Kind[]
}

/** Makes kinds of what the store says is pinned. */
export function createPinnedKinds(parts: PinnedKindsParts): PinnedKinds {
  let known = new Map<string, Kind>()

  async function prepare(pin: StoredPlugin): Promise<Program> {
    try {
      return await prepareArtefact(pin, parts)
    } catch (error) {
      if (error instanceof BackendError) parts.onFailed(pin.name, error.message)
      throw error
    }
  }

  function kindOf(pin: StoredPlugin): Kind | undefined {
    try {
      const description = pin.description as Description
      const plugin = { ...pin, description, prepare: () => prepare(pin) }
      return parts.processes.kindOfPlugin(plugin, (backend, how) =>
        parts.onFailed(pin.name, `Its process ended (${how}).`, backend),
      )
    } catch (error) {
      // One plugin must not hide the others.
      parts.onFailed(pin.name, error instanceof Error ? error.message : String(error))
      return undefined
    }
  }

  return {
    kindsOf(plugins) {
      const next = new Map<string, Kind>()
      for (const pin of plugins) {
        const key = `${pin.name} ${pin.sha256} ${pin.protocol} ${pin.runtime}`
        const kind = known.get(key) ?? kindOf(pin)
        if (kind !== undefined) next.set(key, kind)
      }
      known = next
      return [...next.values()]
    },
    host: {
      async describe({ protocol, ...artefact }) {
        const { bytes, ...program } = await prepareArtefact(artefact, parts)
        try {
          const description: PluginDescription = await parts.processes.describePlugin(program, protocol)
          return { bytes, description }
        } finally {
          await program.close()
        }
      },
      discard: (sha256) => discardArtefact(parts.directory, sha256),
    },
  }
}
