import { isId } from '../../domain/ids.ts'
import { DEFAULT_PAGE, MAX_COUNTED_OF_AGENT } from '../../domain/limits.ts'
import { invalid } from '../../domain/problems.ts'
import { deadAt, isRunning, type Run } from '../../domain/run.ts'
import type { RequestCounts } from '../../domain/run-request.ts'
import type { BeatenRun, RunFilter } from '../../store/tables/runs.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import { findAgentId } from '../find-named.ts'
import { type Page, type PageQuery, pageOf } from '../page.ts'
import { isOwnRun, unknownRun } from './find-run.ts'

/** A run as it is shown. Times in epoch ms. */
export interface RunView extends Run {
  readonly isRunning: boolean
  readonly beatAt: number
  /** When it is dead unless it beats; null: it has ended. */
  readonly deadAt: number | null
  /** Its credentials that have not ended, counted up to `MAX_COUNTED_OF_AGENT`. */
  readonly live: number
  /** What a proxy has told of its requests; undefined: nothing. */
  readonly requests?: RequestCounts | undefined
}

export interface RunQuestion extends PageQuery {
  readonly state?: string | undefined
}

type Parts = Pick<Core, 'store' | 'runs'>

/** The caller's own, newest first: with the token of a run, that run. */
export async function listOwnRuns(
  core: Parts,
  caller: AgentCaller,
  question: RunQuestion,
): Promise<Page<RunView>> {
  return list(core, { agentId: caller.agentId, id: caller.run?.id }, question)
}

/** Those of all agents, or of one, newest first. */
export async function listRuns(
  core: Parts,
  { agent, ...question }: RunQuestion & { readonly agent?: string | undefined },
): Promise<Page<RunView>> {
  const agentId = agent === undefined ? undefined : await findAgentId(core, agent)
  if (agent !== undefined && agentId === undefined) return { items: [], next: undefined }
  return list(core, { agentId }, question)
}

/** Throws `not_found`, also for another agent's. */
export async function readOwnRun(core: Parts, caller: AgentCaller, id: string): Promise<RunView> {
  const view = await readRun(core, id)
  if (!isOwnRun(view, caller)) throw unknownRun()
  return view
}

/** Throws `not_found`. */
export async function readRun(core: Parts, id: string): Promise<RunView> {
  const [view] = await viewsOf(core, await core.store.runs.list({ id }, undefined, 1))
  if (view === undefined) throw unknownRun()
  return view
}

async function list(
  core: Parts,
  filter: RunFilter,
  { state, cursor, limit = DEFAULT_PAGE }: RunQuestion,
): Promise<Page<RunView>> {
  if (cursor !== undefined && !isId('run', cursor))
    throw invalid('"cursor" is not one that this listing gave.')
  const isLiving = state === undefined ? undefined : state === 'running'
  const rows = await core.store.runs.list({ ...filter, isLiving }, cursor, limit + 1)
  const { items, next } = pageOf(rows, limit, ({ run }) => run.id)
  return { items: await viewsOf(core, items), next }
}

async function viewsOf(core: Parts, found: readonly BeatenRun[]): Promise<RunView[]> {
  const now = core.store.now()
  const requests = await core.store.runRequests.counts(found.map(({ run }) => run.id))
  const living = found.filter(({ run }) => isRunning(run, now)).map(({ run }) => run.id)
  const live =
    living.length === 0 ? new Map<string, number>() : await core.store.credentials.countLivingOfRuns(living)
  return found.map(({ run, beatAt }) => {
    const runs = isRunning(run, now)
    const last = Math.max(beatAt ?? run.startedAt, core.runs.latestBeat(run.id) ?? 0)
    return {
      ...run,
      ...(runs || run.endedAt !== null ? {} : { endedAt: run.expiresAt, reason: 'expired' as const }),
      isRunning: runs,
      beatAt: last,
      deadAt: runs ? deadAt(run.heartbeatMs, last) : null,
      live: Math.min(live.get(run.id) ?? 0, MAX_COUNTED_OF_AGENT),
      requests: requests.get(run.id),
    }
  })
}
