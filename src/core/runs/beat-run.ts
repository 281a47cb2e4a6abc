import { deadAt, type Run } from '../../domain/run.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import { findRunning } from './find-run.ts'

type Parts = Pick<Core, 'runs' | 'store' | 'meter'>

/**
 * The run says that it lives. Nothing is written for it here (ADR 0068). Returns when it is dead unless it beats again, epoch
 * ms; without a promise when the run is known. Throws `not_found`, and `gone` for a run that has ended.
 */
export function beatRun(core: Parts, caller: AgentCaller, id: string): number | Promise<number> {
  const found = findRunning(core, caller, id)
  return found instanceof Promise ? found.then((run) => record(core, run)) : record(core, found)
}

function record({ runs, store, meter }: Parts, run: Run): number {
  const now = store.now()
  runs.beat(run, now)
  meter.runBeat()
  return deadAt(run.heartbeatMs, now)
}
