import { isId } from '../../domain/ids.ts'
import { Problem } from '../../domain/problems.ts'
import { isRunning, type Run } from '../../domain/run.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'runs' | 'store'>

export function unknownRun(): Problem {
  return new Problem('not_found', { message: 'There is no such run.' })
}

/** Another agent's is as unknown as one that never was; so is any other to the token of a run. */
export function isOwnRun(run: Run, { agentId, run: own }: Pick<AgentCaller, 'agentId' | 'run'>): boolean {
  return run.agentId === agentId && (own === undefined || own.id === run.id)
}

/** The caller's own run, ended or not. Throws `not_found`. Without a promise when the run is known. */
export function findOwnRun(core: Parts, caller: AgentCaller, id: string): Run | Promise<Run> {
  const found = isId('run', id) ? core.runs.find(id) : undefined
  return found instanceof Promise ? found.then((run) => requireOwn(run, caller)) : requireOwn(found, caller)
}

/** Any agent's, ended or not. Throws `not_found`. */
export async function findAnyRun({ store }: Pick<Core, 'store'>, id: string): Promise<Run> {
  const run = await store.runs.find(id)
  if (run === undefined) throw unknownRun()
  return run
}

function requireOwn(run: Run | undefined, caller: AgentCaller): Run {
  if (run === undefined || !isOwnRun(run, caller)) throw unknownRun()
  return run
}

/** As `findOwnRun`, for one that lives. Throws also `gone`. */
export function findRunning(core: Parts, caller: AgentCaller, id: string): Run | Promise<Run> {
  const found = findOwnRun(core, caller, id)
  return found instanceof Promise
    ? found.then((run) => requireRunning(core, run))
    : requireRunning(core, found)
}

function requireRunning({ store }: Parts, run: Run): Run {
  if (!isRunning(run, store.now()))
    throw new Problem('gone', { message: 'This run has ended; begin another one.' })
  return run
}
