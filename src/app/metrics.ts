import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type Meter, UNKNOWN_BACKEND } from '../core/context.ts'
import type { Store } from '../store/open.ts'

export interface Metrics {
  readonly meter: Meter
  /** Prometheus text exposition format. */
  render(): Promise<string>
  readonly contentType: string
}

/** Shortest interval in ms between two store queries for gauges. */
const FRESH_MS = 10_000

interface BackendName {
  readonly uid: string
  readonly name: string
}

/** Counters of this node, and gauges read from the store at each scrape. */
export function createMetrics(store: Store, backends: () => Promise<readonly BackendName[]>): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const issues = new Counter({
    name: 'mayfly_issues_total',
    help: 'Requested credentials, by outcome',
    labelNames: ['backend', 'outcome'],
    registers,
  })
  const latency = new Histogram({
    name: 'mayfly_issue_seconds',
    help: 'Time from the decision to the commit',
    labelNames: ['backend'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  })
  const revocations = new Counter({
    name: 'mayfly_revocations_total',
    help: 'Revocation attempts upstream, by outcome',
    labelNames: ['backend', 'outcome'],
    registers,
  })
  const expiries = new Counter({
    name: 'mayfly_expiries_total',
    help: 'Expired credentials',
    labelNames: ['backend'],
    registers,
  })
  const logins = new Counter({
    name: 'mayfly_authentication_failures_total',
    help: 'Refused bearer tokens',
    labelNames: ['method'],
    registers,
  })
  storeGauges(registers, store)
  const counted = [issues, latency, revocations, expiries]
  const refresh = backlogGauges(registers, store, backends, (open) => dropDeleted(counted, open))
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
  }
  return {
    meter,
    contentType: registry.contentType,
    render: async () => {
      await refresh()
      return registry.metrics()
    },
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

function backlogGauges(
  registers: Registry[],
  store: Store,
  backends: () => Promise<readonly BackendName[]>,
  onOpen: (open: readonly BackendName[]) => Promise<void>,
): () => Promise<void> {
  const labelNames = ['backend']
  const active = new Gauge({
    name: 'mayfly_credentials_active',
    help: 'Credentials that have not ended',
    labelNames,
    registers,
  })
  const revoking = new Gauge({
    name: 'mayfly_credentials_unsettled',
    help: 'Credentials that wait for their upstream',
    labelNames,
    registers,
  })
  const stuck = new Gauge({
    name: 'mayfly_credentials_stuck',
    help: 'Credentials whose revocation failed six times or more; still retried',
    labelNames,
    registers,
  })
  const lag = new Gauge({
    name: 'mayfly_sweep_lag_seconds',
    help: 'How long the oldest due credential has been waiting',
    labelNames,
    registers,
  })
  const unended = new Gauge({
    name: 'mayfly_unended_seconds',
    help: 'How long the oldest credential that has ended waits for its upstream',
    labelNames,
    registers,
  })
  let readAt = Number.NEGATIVE_INFINITY
  return async () => {
    if (performance.now() - readAt < FRESH_MS) return
    readAt = performance.now()
    const open = await backends()
    await onOpen(open)
    const backlogs = await readBacklogs(store, open)
    // At once, so that nobody who asks meanwhile sees a part of it.
    for (const gauge of [active, revoking, stuck, lag, unended]) gauge.reset()
    for (const [backend, backlog] of backlogs) {
      active.set({ backend }, backlog.active)
      revoking.set({ backend }, backlog.unsettled)
      stuck.set({ backend }, backlog.stuck)
      lag.set({ backend }, backlog.lagMs / 1_000)
      unended.set({ backend }, backlog.unendedMs / 1_000)
    }
  }
}

/** By name: a deleted backend that is not settled yet counts with the one that has its name now, and hides behind none. */
async function readBacklogs(store: Store, open: readonly BackendName[]) {
  const byName = new Map<
    string,
    { active: number; unsettled: number; stuck: number; lagMs: number; unendedMs: number }
  >()
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
