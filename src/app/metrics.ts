import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type Meter, UNKNOWN_BACKEND } from '../core/context.ts'
import type { BackendHealth } from '../domain/backend-health.ts'
import type { Store } from '../store/open.ts'
import { createHttpMetrics, type HttpMetrics } from './http-metrics.ts'
import { VERSION } from './version.ts'

export interface Metrics {
  readonly meter: Meter
  /** Prometheus text exposition format. */
  render(): Promise<string>
  readonly contentType: string
  readonly http: Pick<HttpMetrics, 'watch'>
}

/** Shortest interval in ms between two store queries for gauges. */
const FRESH_MS = 10_000

/** Runs are counted no further, which takes some milliseconds. */
const MOST_RUNS = 100_000

interface BackendName {
  readonly uid: string
  readonly name: string
}

/** A backend that is neither deleted nor being deleted. */
interface BackendNow extends BackendName {
  readonly health: Pick<BackendHealth, 'state' | 'lastSuccess' | 'lastFailure' | 'lastFailureReason'>
  /** Whether calls of this direction are held back. */
  readonly breakers: Readonly<Record<'issuing' | 'revoking', { wait(): number }>>
}

/** What the metrics know of backends. */
interface Sources {
  /** Also those that are deleted and not settled. */
  all(): Promise<readonly BackendName[]>
  now(): Promise<readonly BackendNow[]>
  /** Where traces are collected: spans that were dropped. */
  readonly droppedSpans?: (() => number) | undefined
}

/** Counters of this node, and gauges read from the store at each scrape. */
export function createMetrics(store: Store, backends: Sources): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers })
  const issues = counter('mayfly_issues_total', 'Requested credentials, by outcome', 'backend', 'outcome')
  const latency = new Histogram({
    name: 'mayfly_issue_seconds',
    help: 'Time from the decision to the commit',
    labelNames: ['backend'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  })
  const revocations = counter(
    'mayfly_revocations_total',
    'Revocation attempts upstream, by outcome',
    'backend',
    'outcome',
  )
  const expiries = counter('mayfly_expiries_total', 'Expired credentials', 'backend')
  const logins = counter('mayfly_authentication_failures_total', 'Refused bearer tokens', 'method')
  storeGauges(registers, store)
  new Gauge({
    name: 'mayfly_build_info',
    help: 'Always 1; the labels say what runs',
    labelNames: ['version', 'store', 'node'],
    registers,
  }).set({ version: VERSION, store: store.dialect, node: process.version }, 1)
  const look = healthGauges(registers, backends.now)
  const http = createHttpMetrics()
  if (backends.droppedSpans !== undefined) spanCounter(registers, backends.droppedSpans)
  const runs = runCounters(registers)
  const counted = [issues, latency, revocations, expiries]
  const refresh = backlogGauges(registers, store, backends.all, (open) => dropDeleted(counted, open))
  const meter: Meter = {
    issued(backend, outcome, ms) {
      issues.inc({ backend, outcome })
      latency.observe({ backend }, ms / 1_000)
    },
    revoked: (backend, outcome) => revocations.inc({ backend, outcome }),
    expired: (backend, count) => expiries.inc({ backend }, count),
    authenticated(method, outcome) {
      if (outcome === 'failed') logins.inc({ method })
    },
    ...runs,
  }
  return {
    meter,
    contentType: registry.contentType,
    http,
    render: async () => {
      await refresh()
      await look()
      return (await registry.metrics()) + http.render()
    },
  }
}

/** Of this node. */
function runCounters(registers: Registry[]): Pick<Meter, 'runStarted' | 'runEnded' | 'runBeat'> {
  const started = new Counter({ name: 'mayfly_runs_started_total', help: 'Runs that began', registers })
  const ended = new Counter({
    name: 'mayfly_runs_ended_total',
    help: 'Runs that ended, but for those that ended with their agent',
    labelNames: ['reason'],
    registers,
  })
  const beats = new Counter({ name: 'mayfly_run_beats_total', help: 'Heartbeats of runs', registers })
  return {
    runStarted: () => started.inc(),
    runEnded: (reason, count) => ended.inc({ reason }, count),
    runBeat: () => beats.inc(),
  }
}

/** Figures that are counted elsewhere and read at each scrape. */
function storeGauges(registers: Registry[], store: Store): void {
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  counter('mayfly_commits_total', 'Commits to the store', () => store.stats.commits)
  counter('mayfly_changes_total', 'Changes in those commits', () => store.stats.changes)
  gauge('mayfly_commit_batch_max', 'Largest number of changes in one commit', () => store.stats.largestBatch)
  gauge('mayfly_ready', '1 when the server can issue', () => (store.trouble() === undefined ? 1 : 0))
  gauge('process_resident_memory_bytes', 'Resident memory', () => process.memoryUsage.rss())
  counter('process_cpu_seconds_total', 'User and system CPU time', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
}

/** Drops the series of deleted backends, so that names do not accumulate while the process lives. */
async function dropDeleted(
  counted: readonly (Counter<string> | Histogram<string>)[],
  open: readonly BackendName[],
): Promise<void> {
  const kept = new Set<unknown>([...open.map(({ name }) => name), UNKNOWN_BACKEND])
  for (const metric of counted) {
    for (const { labels } of (await metric.get()).values) {
      const { le: _, ...own } = labels
      if (!kept.has(own['backend'])) metric.remove(own)
    }
  }
}

interface Backlog {
  readonly active: number
  readonly unsettled: number
  readonly stuck: number
  readonly lagMs: number
  readonly unendedMs: number
}

const BACKLOG: readonly (readonly [name: string, help: string, read: (backlog: Backlog) => number])[] = [
  ['mayfly_credentials_active', 'Credentials that have not ended', ({ active }) => active],
  ['mayfly_credentials_unsettled', 'Credentials that wait for their upstream', ({ unsettled }) => unsettled],
  [
    'mayfly_credentials_stuck',
    'Credentials whose revocation failed six times or more; still retried',
    ({ stuck }) => stuck,
  ],
  [
    'mayfly_sweep_lag_seconds',
    'How long the oldest due credential has been waiting',
    ({ lagMs }) => lagMs / 1_000,
  ],
  [
    'mayfly_unended_seconds',
    'How long the oldest credential that has ended waits for its upstream',
    ({ unendedMs }) => unendedMs / 1_000,
  ],
]

function backlogGauges(
  registers: Registry[],
  store: Store,
  backends: () => Promise<readonly BackendName[]>,
  onOpen: (open: readonly BackendName[]) => Promise<void>,
): () => Promise<void> {
  const gauges = BACKLOG.map(([name, help, read]) => ({
    gauge: new Gauge({ name, help, labelNames: ['backend'], registers }),
    read,
  }))
  const running = new Gauge({ name: 'mayfly_runs_running', help: 'Runs that have not ended', registers })
  let readAt = Number.NEGATIVE_INFINITY
  return async () => {
    if (performance.now() - readAt < FRESH_MS) return
    readAt = performance.now()
    const open = await backends()
    await onOpen(open)
    const backlogs = await readBacklogs(store, open)
    running.set(await store.runs.countAllLiving(MOST_RUNS))
    // At once, so that nobody who asks meanwhile sees a part of it.
    for (const { gauge, read } of gauges) {
      gauge.reset()
      for (const [backend, backlog] of backlogs) gauge.set({ backend }, read(backlog))
    }
  }
}

/** By name: a deleted backend that is not settled yet counts with the one that has its name now, and hides behind none. */
async function readBacklogs(store: Store, open: readonly BackendName[]) {
  const byName = new Map<string, Backlog>()
  const waiting = await store.credentials.unended()
  for (const { uid, name } of open) {
    const { open: all, unsettled, stuck, earliest } = await store.credentials.backlog(uid)
    const others = byName.get(name) ?? { active: 0, unsettled: 0, stuck: 0, lagMs: 0, unendedMs: 0 }
    byName.set(name, {
      active: others.active + all - unsettled,
      unsettled: others.unsettled + unsettled,
      stuck: others.stuck + stuck,
      lagMs: Math.max(others.lagMs, store.now() - (earliest ?? store.now())),
      unendedMs: Math.max(others.unendedMs, store.now() - (waiting.get(uid)?.since ?? store.now())),
    })
  }
  return byName
}

/** From memory at each scrape. A backend of which nothing is known has no `mayfly_backend_up`. */
function healthGauges(registers: Registry[], read: Sources['now']): () => Promise<void> {
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name, help, labelNames, registers })
  const up = gauge('mayfly_backend_up', '1 when the upstream works, 0 when it does not', 'backend')
  const down = gauge(
    'mayfly_backend_down',
    '1 for each backend that is down, with the reason',
    'backend',
    'reason',
  )
  const success = gauge(
    'mayfly_backend_last_success_timestamp_seconds',
    'When the upstream last did what it was asked',
    'backend',
  )
  const failure = gauge('mayfly_backend_last_failure_timestamp_seconds', 'When it last failed', 'backend')
  const breaker = gauge(
    'mayfly_backend_breaker_open',
    '1 while calls to an upstream that fails are held back',
    'backend',
    'direction',
  )
  return async () => {
    const all = await read()
    for (const one of [up, down, success, failure, breaker]) one.reset()
    for (const { name: backend, health, breakers } of all) {
      const { state, lastSuccess, lastFailure, lastFailureReason } = health
      if (state !== 'unknown') up.set({ backend }, state === 'up' ? 1 : 0)
      if (state === 'down') down.set({ backend, reason: lastFailureReason ?? 'failed' }, 1)
      if (lastSuccess !== undefined) success.set({ backend }, lastSuccess / 1_000)
      if (lastFailure !== undefined) failure.set({ backend }, lastFailure / 1_000)
      for (const direction of ['issuing', 'revoking'] as const)
        breaker.set({ backend, direction }, breakers[direction].wait() > 0 ? 1 : 0)
    }
  }
}

function spanCounter(registers: Registry[], read: () => number): void {
  new Counter({
    name: 'mayfly_spans_dropped_total',
    help: 'Spans that the receiver of traces did not take in time',
    registers,
    collect() {
      this.reset()
      this.inc(read())
    },
  })
}
