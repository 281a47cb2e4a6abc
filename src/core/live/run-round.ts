import { lowestBodyAt } from '../../domain/ids.ts'
import { deadAt, isRunning, type Run } from '../../domain/run.ts'
import type { BeatenRun } from '../../store/tables/runs.ts'
import type { Core } from '../context.ts'
import type { RunStateView, RunStream } from '../parts.ts'
import { currentCallers, type Watched } from './current-callers.ts'

/** How often new credentials of the followed runs are looked for, and how far back from the last look: a commit may take so long. */
const DISCOVER_MS = 450
const LOOK_BACK_MS = 10_000
/** A stream says at least so often that it lives, or twice in each heartbeat of its run. */
const ALIVE_MS = 2_500
/** Runs with more credentials than this tell of new ones only so often. */
const MANY = 100
const MANY_MS = 2_000
/** A node that is alone with its store looks at least so often, though it has committed nothing. */
const ALONE_MS = 1_000
/** Ids in one query: on SQLite other work gets its turn in between. */
const SLICE = 1_000

export interface RunLine extends Watched {
  caller: Watched['caller']
  readonly stream: RunStream
  /** What it was told last, of which version of the run, and when by `performance.now()`. */
  told: { readonly version: number; readonly credentials: readonly string[]; readonly at: number } | undefined
  /** `performance.now()` of the last word. */
  spokenAt: number
  leave(): void
}

/** A run that streams follow. */
export interface Followed {
  run: Run
  isRunning: boolean
  readonly lines: Set<RunLine>
  /** Its credentials that live, as far as is known, with their expiries; undefined: not read yet. */
  living: Map<string, number> | undefined
  /** When all that lived was known last, by the clock of the store. */
  knownAt: number
  /** Rises with every change that its streams are told of. */
  version: number
}

type Parts = Pick<Core, 'store' | 'callers' | 'runs' | 'log'>

/** One round for all followed runs. Never rejects. */
export function createRunRound(core: Parts, followed: ReadonlyMap<string, Followed>): () => Promise<void> {
  const changes = createChanges(core)
  let isFailing = false
  return async () => {
    try {
      const all = [...followed.values()]
      const readAt = await readAll(core, all, changes)
      await tellAll(core, all, readAt)
      isFailing = false
    } catch (error) {
      // Streams fall silent: whoever follows them must not believe that nothing has ended.
      core.log[isFailing ? 'debug' : 'error']({ err: error }, 'streams of runs wait for the store')
      isFailing = true
    }
  }
}

type Changes = ReturnType<typeof createChanges>

/** Brings what is known of these runs up to date. Returns as of when their credentials are known. */
async function readAll(core: Parts, all: readonly Followed[], changes: Changes): Promise<number> {
  await endOldCallers(core, all)
  await Promise.all(all.map((one) => readRun(core, one)))
  const begun = core.store.now()
  const running = all.filter((one) => one.isRunning)
  const fresh = running.filter(({ living }) => living === undefined)
  const known = running.filter(({ living }) => living !== undefined)
  if (fresh.length > 0) {
    const found = await core.store.credentials.livingOfRuns(fresh.map(({ run }) => run.id))
    const byId = new Map(fresh.map((one) => [one.run.id, one]))
    for (const one of fresh) {
      one.living = new Map()
      one.knownAt = begun
    }
    for (const { id, runId, expiresAt } of found) byId.get(runId)?.living?.set(id, expiresAt)
  }
  const readAt = known.length === 0 ? begun : await changes(known)
  for (const one of running) dropExpired(one, core.store.now())
  return Math.min(begun, readAt)
}

async function readRun({ runs, store }: Parts, one: Followed): Promise<void> {
  const found = runs.find(one.run.id)
  learn(one, found instanceof Promise ? await found : found, store.now())
}

function learn(one: Followed, run: Run | undefined, now: number): void {
  if (run !== undefined) one.run = run
  if (!one.isRunning || (run !== undefined && isRunning(run, now))) return
  one.isRunning = false
  one.version += 1
}

function dropExpired(one: Followed, now: number): void {
  for (const [id, expiresAt] of one.living ?? [])
    if (expiresAt <= now && one.living?.delete(id)) one.version += 1
}

/**
 * What has ended of the known credentials, and what was added. A node that is alone with its store reads nothing while it
 * has committed nothing.
 */
function createChanges({ store }: Pick<Core, 'store'>) {
  let seen = -1
  let lookedAt = 0
  let discoveredAt = 0
  let readAt = 0
  const isQuiet = () =>
    !store.hasOtherNodes && store.stats.changes === seen && performance.now() - lookedAt < ALONE_MS

  return async (known: readonly Followed[]): Promise<number> => {
    const begun = store.now()
    if (isQuiet()) {
      readAt = begun
      return begun
    }
    const changes = store.stats.changes
    const isDue = performance.now() - discoveredAt >= DISCOVER_MS
    // What fails is done again, and until then nothing is known.
    seen = -1
    await findEnded(store, known)
    if (!isDue) return readAt
    await discover(store, known, begun)
    seen = changes
    lookedAt = performance.now()
    discoveredAt = lookedAt
    readAt = begun
    return readAt
  }
}

async function findEnded({ credentials }: Core['store'], known: readonly Followed[]): Promise<void> {
  const byId = new Map(
    known.flatMap((one) => [...(one.living?.keys() ?? [])].map((id) => [id, one] as const)),
  )
  const ids = [...byId.keys()]
  for (let at = 0; at < ids.length; at += SLICE)
    for (const id of await credentials.endedAmong(ids.slice(at, at + SLICE))) {
      const one = byId.get(id)
      if (one?.living?.delete(id)) one.version += 1
    }
}

async function discover(
  { credentials }: Core['store'],
  known: readonly Followed[],
  now: number,
): Promise<void> {
  const byRun = new Map(known.map((one) => [one.run.id, one]))
  // The clock may have jumped since the last look, or the store been away for longer than a commit takes.
  const lastAt = Math.min(now, ...known.map(({ knownAt }) => knownAt))
  const since = lowestBodyAt(lastAt - LOOK_BACK_MS)
  for (const { id, runId, expiresAt } of await credentials.livingOfRuns([...byRun.keys()], since)) {
    const one = byRun.get(runId)
    if (one?.living === undefined || one.living.has(id)) continue
    one.living.set(id, expiresAt)
    one.version += 1
  }
  for (const one of known) one.knownAt = now
}

/** Ends the lines of callers whose tokens have ended; where the run has ended with them, they are told of that first. */
async function endOldCallers(core: Parts, all: readonly Followed[]): Promise<void> {
  const lines = all.flatMap((one) => [...one.lines])
  const callers = await currentCallers(core, lines)
  const ended = new Set<RunLine>()
  for (const [index, line] of lines.entries()) {
    const caller = callers[index]
    if (caller === undefined) ended.add(line)
    else line.caller = caller
  }
  if (ended.size === 0) return
  for (const one of all) {
    const own = [...one.lines].filter((line) => ended.has(line))
    if (own.length === 0) continue
    await readRun(core, one)
    if (!one.isRunning) continue
    for (const { leave, stream } of own) {
      leave()
      stream.end()
    }
  }
}

async function tellAll(core: Parts, all: readonly Followed[], readAt: number): Promise<void> {
  const now = performance.now()
  const changed = all.filter((one) => [...one.lines].some((line) => isToBeTold(one, line, now)))
  const views = await viewsOf(core, changed)
  for (const one of all) {
    const view = views.get(one)
    for (const line of [...one.lines]) {
      if (view !== undefined && isToBeTold(one, line, now)) tell(one, line, { view, readAt, now })
      else if (line.told !== undefined && now - line.spokenAt >= aliveMs(one.run)) line.stream.alive(readAt)
      else continue
      line.spokenAt = now
    }
  }
}

function tell(
  { version }: Followed,
  line: RunLine,
  { view, readAt, now }: { readonly view: RunStateView; readonly readAt: number; readonly now: number },
): void {
  line.told = { version, credentials: view.credentials, at: now }
  line.stream.state(view, readAt)
  if (view.isRunning) return
  line.leave()
  line.stream.end()
}

const aliveMs = ({ heartbeatMs }: Run) => Math.min(ALIVE_MS, heartbeatMs / 2)

/** What has ended is told at once, and so is what was added, unless there is much of it. */
function isToBeTold({ version, living, isRunning }: Followed, line: RunLine, now: number): boolean {
  if (line.told?.version === version) return false
  if (line.told === undefined || !isRunning || (living?.size ?? 0) <= MANY) return true
  return now - line.told.at >= MANY_MS || line.told.credentials.some((id) => living?.has(id) !== true)
}

/**
 * Runs are read after their credentials, which end in the same commit, and not from memory, which may learn of a commit later than
 * a reader of the store: none that has ended is shown as one that lives without credentials.
 */
async function viewsOf(core: Parts, some: readonly Followed[]): Promise<Map<Followed, RunStateView>> {
  const found = some.length === 0 ? [] : await core.store.runs.findAll(some.map(({ run }) => run.id))
  const byId = new Map(found.map((one) => [one.run.id, one]))
  const now = core.store.now()
  return new Map(
    some.map((one) => {
      const beaten = byId.get(one.run.id)
      learn(one, beaten?.run, now)
      return [one, viewOf(core, one, beaten)]
    }),
  )
}

function viewOf(
  { runs }: Parts,
  { run, isRunning, living }: Followed,
  beaten: BeatenRun | undefined,
): RunStateView {
  const last = Math.max(beaten?.beatAt ?? run.startedAt, runs.latestBeat(run.id) ?? 0)
  return {
    isRunning,
    reason: isRunning ? null : (run.reason ?? 'expired'),
    deadAt: isRunning ? deadAt(run.heartbeatMs, last) : null,
    credentials: isRunning ? [...(living?.keys() ?? [])] : [],
  }
}
