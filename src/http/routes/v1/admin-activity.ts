import { readActivity } from '../../../core/audit/read-activity.ts'
import { createOverview } from '../../../core/credentials/overview.ts'
import { inTurn } from '../../../core/turns.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { presentFailure } from '../present-health.ts'
import { optional, timestamp, timestampOrNull } from '../wire.ts'

/** What happened over time, and what is there now. */
export function adminActivityRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/activity', async ({ actor, query }) => {
    const view = await inTurn(core, actor.caller, () => readActivity(core, query))
    return {
      since: timestamp(view.since),
      until: timestamp(view.until),
      step_seconds: view.step / 1_000,
      counted_until: timestamp(view.countedUntil),
      series: view.series.map(({ backend, action, points }) => ({
        backend: backend === '' ? null : backend,
        action,
        points: points.map(([at, count]) => ({ at: timestamp(at), count })),
      })),
    }
  })

  const overview = createOverview(core)
  addRoute(http, 'GET /v1/admin/overview', async () => {
    const { at, live, waiting, unended, sweepLagMs, sizeBytes, entriesOfDay } = await overview()
    return {
      at: timestamp(at),
      live: {
        total: live.total,
        by_backend: [...live.byBackend],
        by_agent: live.byAgent.map(({ id, name, count }) => ({ agent_id: id, agent_name: name, count })),
        history: live.history.map((point) => ({ ...point, at: timestamp(point.at) })),
      },
      waiting: { count: waiting.count, oldest: timestampOrNull(waiting.oldest) },
      unended: unended.map(({ backend, count, since, lastFailure }) => ({
        backend,
        count,
        since: timestamp(since),
        ...optional('last_failure', presentFailure(lastFailure)),
      })),
      sweep_lag_seconds: Math.floor(sweepLagMs / 1_000),
      store: { engine: core.store.dialect, ...optional('size_bytes', sizeBytes) },
      audit_entries_24h: entriesOfDay,
      version: core.settings.version,
    }
  })
}
