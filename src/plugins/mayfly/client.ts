import { type CallOptions, type Client, createClient } from '@connectrpc/connect'
import type { Host } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { callFault } from '../process/connection.ts'
import type { Isolation } from '../process/isolation.ts'
import { type PluginProcess, startProcess } from '../process/process.ts'
import type { PinnedPlugin, Program } from '../process/program.ts'
import { Health } from '../proto/health_pb.ts'
import { Kind } from '../proto/mayfly_plugin_v1_pb.ts'
import type { Hide } from '../text.ts'

export type KindClient = Client<typeof Kind>

const COOKIE = { key: 'MAYFLY_PLUGIN', value: 'mayfly.plugin.v1' }
/** How long a plugin may take for what reaches no upstream. */
export const QUICK_MS = 10_000

export interface StartParts {
  readonly name: string
  readonly isolation: Isolation
  readonly log: Host['log']
  readonly hide: Hide
  readonly signal?: AbortSignal | undefined
}

export interface Started {
  readonly process: PluginProcess
  readonly client: KindClient
}

/** Starts a process from these bytes; the copy is removed when it has ended. */
export async function startClient(
  program: Program | Pick<PinnedPlugin, 'prepare'>,
  parts: StartParts,
): Promise<Started> {
  const ready = 'prepare' in program ? await program.prepare() : program
  const process = await startProcess({ ...parts, program: ready, cookie: COOKIE })
  return { process, client: createClient(Kind, process.transport) }
}

/** One call; what fails becomes a `BackendError`. */
export async function callKind<O>(
  { client, process }: Started,
  parts: Pick<StartParts, 'name' | 'hide' | 'signal'> & { readonly timeoutMs: number },
  run: (client: KindClient, options: CallOptions) => Promise<O>,
): Promise<O> {
  const { name, hide, timeoutMs, signal } = parts
  try {
    return await run(client, signal === undefined ? { timeoutMs } : { timeoutMs, signal })
  } catch (error) {
    const fault = callFault(error, name, hide, signal)
    if (fault.fault === 'timeout') void endIfDead(process, timeoutMs)
    throw fault
  }
}

/** An upstream that is slow keeps a call waiting; a plugin that hangs does not even answer this. */
export async function endIfDead(process: PluginProcess, timeoutMs: number): Promise<void> {
  const health = createClient(Health, process.transport)
  const answer = await health.check({ service: 'plugin' }, { timeoutMs }).then(
    () => undefined,
    (error: unknown) => callFault(error, '', (text) => text).fault,
  )
  if (answer === 'timeout' && process.isRunning()) await process.kill()
}

/** For calls before a backend exists: with a process of its own, which ends with them. */
export async function withProcess<O>(
  program: Program | Pick<PinnedPlugin, 'prepare'>,
  parts: StartParts,
  run: (call: <A>(use: (client: KindClient, options: CallOptions) => Promise<A>) => Promise<A>) => Promise<O>,
): Promise<O> {
  const started = await startClient(program, parts)
  try {
    return await run((use) => callKind(started, { ...parts, timeoutMs: QUICK_MS }, use))
  } finally {
    await started.process.stop()
  }
}

export function misconfigured(name: string, says: string): BackendError {
  return new BackendError('misconfigured', `The plugin ${name} ${says}.`)
}
