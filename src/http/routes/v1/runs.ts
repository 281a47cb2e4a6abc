import { endOwnRun, endRun } from '../../../core/credentials/end-run-now.ts'
import { followRun } from '../../../core/live/followed-runs.ts'
import { beatRun } from '../../../core/runs/beat-run.ts'
import { listOwnRequests, listRequests } from '../../../core/runs/list-requests.ts'
import { listOwnRuns, listRuns, type RunView, readOwnRun, readRun } from '../../../core/runs/list-runs.ts'
import { recordRequests } from '../../../core/runs/record-requests.ts'
import { startRun } from '../../../core/runs/start-run.ts'
import { inTurn } from '../../../core/turns.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { bearerOf, sendEvents } from '../events-reply.ts'
import { linked } from '../paging.ts'
import { presentCounts, presentRequest, readBatch } from '../present-requests.ts'
import { createRunStream } from '../run-stream.ts'
import { optional, timestamp, timestampOrNull } from '../wire.ts'

export function runRoutes(http: Http): void {
  ownRunRoutes(http)
  adminRunRoutes(http)
}

function ownRunRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/runs', async ({ actor, body }) => present(await startRun(core, actor, body ?? {})))

  addRoute(http, 'GET /v1/runs', async (call) => {
    const { caller } = call.actor
    const page = await inTurn(core, caller, () => listOwnRuns(core, caller, call.query))
    return linked(call, page).map(present)
  })

  addRoute(http, 'GET /v1/runs/:id', async ({ actor, params }) =>
    present(await readOwnRun(core, actor.caller, params.id)),
  )

  addRoute(http, 'POST /v1/runs/:id/heartbeat', ({ actor, params }) => {
    const dead = beatRun(core, actor.caller, params.id)
    return dead instanceof Promise ? dead.then(presentBeat) : presentBeat(dead)
  })

  addRoute(http, 'GET /v1/runs/:id/events', async ({ actor, params, request, reply }) => {
    const stream = createRunStream()
    const follower = await followRun(core, actor, bearerOf(request), params.id, stream)
    stream.body.once('close', follower.leave)
    return sendEvents(reply, stream.body)
  })

  addRoute(http, 'POST /v1/runs/:id/requests', async ({ actor, params, body }) => {
    await recordRequests(core, actor, params.id, readBatch(body))
  })

  addRoute(http, 'GET /v1/runs/:id/requests', async (call) => {
    const { caller } = call.actor
    const page = await inTurn(core, caller, () => listOwnRequests(core, caller, call.params.id, call.query))
    return linked(call, page).map(presentRequest)
  })

  addRoute(http, 'DELETE /v1/runs/:id', async ({ actor, params, query }) => {
    await endOwnRun(core, actor, params.id, query.reason)
  })
}

function adminRunRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/runs', async (call) => {
    const page = await inTurn(core, call.actor.caller, () => listRuns(core, call.query))
    return linked(call, page).map(present)
  })

  addRoute(http, 'GET /v1/admin/runs/:id', async ({ params }) => present(await readRun(core, params.id)))

  addRoute(http, 'GET /v1/admin/runs/:id/requests', async (call) => {
    const page = await inTurn(core, call.actor.caller, () => listRequests(core, call.params.id, call.query))
    return linked(call, page).map(presentRequest)
  })

  addRoute(http, 'DELETE /v1/admin/runs/:id', async ({ actor, params }) => {
    await endRun(core, actor, params.id)
  })
}

const presentBeat = (deadAt: number) => ({ dead_at: timestamp(deadAt) })

function present(view: RunView) {
  return {
    id: view.id,
    agent: { id: view.agentId, name: view.agentName },
    purpose: view.purpose,
    heartbeat: formatDuration(view.heartbeatMs),
    state: view.isRunning ? 'running' : 'ended',
    started_at: timestamp(view.startedAt),
    last_beat: timestamp(view.beatAt),
    dead_at: timestampOrNull(view.deadAt),
    expires_at: timestampOrNull(view.expiresAt),
    ended_at: timestampOrNull(view.endedAt),
    reason: view.reason,
    ended_by: view.endedBy,
    ip_address: view.ipAddress,
    user_agent: view.userAgent,
    credentials: { live: view.live },
    ...optional('requests', view.requests && presentCounts(view.requests)),
  }
}
