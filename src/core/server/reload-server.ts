import { ConfigError, type Fault } from '../../domain/fault.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, Caller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

/** A configuration that was read and checked whole. Nothing of it is in force before `apply`, which cannot fail. */
export interface NextConfiguration {
  /** The settings whose value, or whose file, is another one. */
  readonly changed: readonly string[]
  /** What is left out because it is faulty: recipes. */
  readonly skipped: readonly Fault[]
  /** What the store must know of it. */
  readonly steps: readonly Step[]
  apply(): void
}

/** Throws `ConfigError`, which also names each change that needs a restart. */
export type ReadConfiguration = () => Promise<NextConfiguration>

export interface Reloaded {
  readonly changed: readonly string[]
  readonly skipped: readonly Fault[]
  /** If there are any, nothing has changed. */
  readonly faults: readonly Fault[]
}

type Parts = Pick<Core, 'store' | 'ids' | 'log' | 'denials' | 'serialize'>

/**
 * Reads the configuration again, and takes it whole or not at all. Asked by the system, or over `admin.sock`. Throws `not_allowed`, and
 * `store_unavailable` if it cannot be recorded.
 */
export async function reloadServer(
  core: Parts,
  actor: Actor<Caller | undefined>,
  read: ReadConfiguration,
): Promise<Reloaded> {
  requireSocket(core, actor)
  return core.serialize('reload', async () => {
    let next: NextConfiguration
    try {
      next = await read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return refuse(core, actor, error.faults)
    }
    const { changed, skipped } = next
    const details = { changed, skipped: skipped.map(({ source }) => source) }
    await commit(core, actor, [...next.steps, audit(core, actor, { action: 'server.reloaded', details })])
    next.apply()
    core.log.info({ changed }, 'reloaded')
    return { changed, skipped, faults: [] }
  })
}

function refuse(core: Parts, actor: Actor<Caller | undefined>, faults: readonly Fault[]): Reloaded {
  core.log.error({ faults }, 'nothing was reloaded: the configuration cannot be taken')
  const details = { faults: faults.map(({ source }) => source) }
  core.denials.record(actor, { action: 'server.reloaded', outcome: 'failed', agent: null, details })
  return { changed: [], skipped: [], faults }
}

/** Its files are those of the machine, and so are the faults in them. */
function requireSocket(core: Parts, actor: Actor<Caller | undefined>): void {
  const { caller } = actor
  if (caller === undefined || (caller.kind === 'local' && caller.method === 'unix_socket')) return
  if (caller.kind === 'agent')
    core.denials.record(actor, { action: 'auth.failed', details: { reason: 'reload_over_network' } })
  throw new Problem('not_allowed', {
    message:
      'The server is reloaded only on its own machine, over its admin.sock and without a token: run mayfly server reload there, or systemctl reload mayfly.',
  })
}
