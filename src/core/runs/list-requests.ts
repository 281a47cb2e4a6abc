import { DEFAULT_PAGE } from '../../domain/limits.ts'
import { invalid } from '../../domain/problems.ts'
import { isRefused, MAX_LINES, type RunRequest } from '../../domain/run-request.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import type { Page, PageQuery } from '../page.ts'
import { findAnyRun, findOwnRun } from './find-run.ts'

export interface RequestQuestion extends PageQuery {
  /** `refused`: also those that were misused. */
  readonly decision?: string | undefined
}

/** Batches that one page reads where not all of their lines are asked for; the page may then have few items, or none. */
const MOST_BATCHES = 20
const CURSOR = /^([0-7][0-9a-hjkmnp-tv-z]{25})\.(\d{1,3})$/

/** Throws `not_found`, also for another agent's run, and `invalid_request`. */
export async function listOwnRequests(
  core: Pick<Core, 'store' | 'runs'>,
  caller: AgentCaller,
  id: string,
  question: RequestQuestion,
): Promise<Page<RunRequest>> {
  await findOwnRun(core, caller, id)
  return list(core, id, question)
}

/** Throws `not_found` and `invalid_request`. */
export async function listRequests(
  core: Pick<Core, 'store'>,
  id: string,
  question: RequestQuestion,
): Promise<Page<RunRequest>> {
  await findAnyRun(core, id)
  return list(core, id, question)
}

/** Newest first. A cursor is the id of a batch, and of how many of its lines the rest of the listing begins. */
async function list(
  { store }: Pick<Core, 'store'>,
  runId: string,
  { decision, cursor, limit = DEFAULT_PAGE }: RequestQuestion,
): Promise<Page<RunRequest>> {
  const [, last, left] = cursor === undefined ? [] : readCursor(cursor)
  const { runRequests } = store
  const matches = matcherOf(decision)
  const most = matches === undefined ? limit + 1 : MOST_BATCHES + 1
  const ofRefused = decision === 'refused' || decision === 'misused'
  const known = await runRequests.weights(runId, { last, isRefused: ofRefused }, most)
  const chosen =
    matches === undefined ? upTo(limit + MAX_LINES, known) : known.slice(0, MOST_BATCHES).map(({ id }) => id)
  const batches = chosen.length === 0 ? [] : await runRequests.lines(runId, chosen)
  const items: RunRequest[] = []
  for (const { id, lines } of batches) {
    let index = id === last ? Math.min(Number(left), lines.length) : lines.length
    for (; index > 0; index -= 1) {
      const line = lines[index - 1]
      if (line === undefined || matches?.(line) === false) continue
      if (items.length === limit) return { items, next: `${id}.${index}` }
      items.push(line)
    }
  }
  const next = known[chosen.length]
  return { items, next: next && `${next.id}.${MAX_LINES}` }
}

function readCursor(cursor: string): RegExpExecArray {
  const found = CURSOR.exec(cursor)
  if (found === null) throw invalid('"cursor" is not one that this listing gave.')
  return found
}

/** Undefined: all match. */
function matcherOf(decision: string | undefined): ((line: RunRequest) => boolean) | undefined {
  if (decision === undefined) return undefined
  return decision === 'refused' ? isRefused : (line) => line.decision === decision
}

/** The first of these batches, as many as have so many lines together. */
function upTo(most: number, known: readonly { readonly id: string; readonly count: number }[]): string[] {
  const ids: string[] = []
  let lines = 0
  for (const { id, count } of known) {
    if (lines > most) break
    ids.push(id)
    lines += count
  }
  return ids
}
