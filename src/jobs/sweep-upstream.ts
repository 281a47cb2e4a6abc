import { setImmediate as turn } from 'node:timers/promises'
import type { OpenBackend } from '../backends/open-backends.ts'
import type { Core } from '../core/context.ts'
import { takeOver } from '../core/credentials/expire-credentials.ts'
import { settleUpstream } from '../core/credentials/settle-upstream.ts'
import type { Credential } from '../domain/credential.ts'
import { createDueQueue, LOOK_EVERY_MS } from './due-queue.ts'

/**
 * Ends due credentials of one backend until none is left. If revocations are held up, for example by a lock of the
 * account's holder, their places go to others: the next one belongs to the agent that has the fewest under way, and
 * credentials of other agents are found even behind thousands of one agent. Throws what the store throws, once none is
 * under way.
 */
export function sweepUpstream(core: Core, backend: OpenBackend, signal: AbortSignal): Promise<void> {
  return core.trace('sweep', { 'mayfly.backend': backend.name }, () => sweepTraced(core, backend, signal))
}

async function sweepTraced(core: Core, backend: OpenBackend, signal: AbortSignal): Promise<void> {
  const { lanes, breakers } = backend
  const due = createDueQueue(core, backend)
  let changed = Promise.withResolvers<void>()
  let fault: { readonly error: unknown } | undefined

  function begin(credential: Credential): void {
    const end = lanes.begin(credential.agentId)
    endOne(core, backend, credential)
      .then(end, (error: unknown) => {
        end('failed')
        fault = { error }
      })
      .finally(() => {
        due.underWay.delete(credential.id)
        changed.resolve()
      })
  }

  async function fill(): Promise<void> {
    due.dropOld()
    await due.takeOfOthers()
    while (fault === undefined && !signal.aborted && breakers.revoking.wait() <= 0) {
      const next = due.next()
      if (next !== undefined) begin(next)
      else if (!(await due.takeEarliest())) return
    }
  }

  try {
    for (;;) {
      changed = Promise.withResolvers<void>()
      await fill()
      if (due.underWay.size === 0) break
      await orAfter(LOOK_EVERY_MS, changed.promise)
      // The event loop comes first.
      await turn()
    }
  } finally {
    await due.release()
  }
  if (fault !== undefined) throw fault.error
}

async function endOne(
  core: Core,
  backend: OpenBackend,
  credential: Credential,
): Promise<'settled' | 'failed'> {
  const revoking = await takeOver(core, backend, credential)
  if (revoking === undefined) return 'settled'
  return (await settleUpstream(core, backend, revoking)) ? 'settled' : 'failed'
}

async function orAfter(ms: number, first: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([first, late])
  clearTimeout(timer)
}
