import { useEffect } from 'react'
import { queries, refresh } from '../api/queries.ts'
import { isForgotten, useIdle } from './idle.ts'
import { startLive, useLive } from './live.ts'

/** At most one request for the same listing in this time, however much happens. */
const PAUSE_MS = 1_000

/** Which listings show what an action changes. */
const SHOWN = {
  enrollment: ['GET /v1/admin/pending', 'GET /v1/admin/pending/:id', 'GET /v1/admin/overview'],
  credential: [
    'GET /v1/admin/tokens',
    'GET /v1/admin/tokens/:id',
    'GET /v1/admin/agents/:name',
    'GET /v1/admin/overview',
    'GET /v1/admin/runs/:id',
  ],
  // Its credentials have entries of their own, some of which come later. A beat has none.
  run: ['GET /v1/admin/runs', 'GET /v1/admin/runs/:id'],
  agent: ['GET /v1/admin/agents', 'GET /v1/admin/agents/:name', 'GET /v1/admin/keys'],
  backend: ['GET /v1/admin/backends', 'GET /v1/admin/backends/:name', 'GET /v1/admin/overview'],
  operator: ['GET /v1/admin/operators', 'GET /v1/admin/operators/:id'],
  passkey: ['GET /v1/admin/operators/:id/passkeys'],
  session: ['GET /v1/admin/sessions'],
  plugin: ['GET /v1/admin/plugins', 'GET /v1/admin/kinds'],
  server: ['GET /v1/admin/policies', 'GET /v1/admin/settings'],
} as const
type Shown = (typeof SHOWN)[keyof typeof SHOWN][number]

const due = new Set<Shown>()
let timer: ReturnType<typeof setTimeout> | undefined

function plan(routes: readonly Shown[]): void {
  for (const route of routes) due.add(route)
  if (timer !== undefined) return
  timer = setTimeout(() => {
    timer = undefined
    if (!isForgotten()) void refresh(...due)
    due.clear()
  }, PAUSE_MS)
}

/** A server under load says so again after five seconds (core/live/feed.ts); reading everything more often would add to it. */
const PAUSE_AFTER_RESET_MS = 5_000
let all: ReturnType<typeof setTimeout> | undefined
let isDueAgain = false

function planAll(): void {
  isDueAgain = all !== undefined
  if (isDueAgain || isForgotten()) return
  void queries.invalidateQueries()
  all = setTimeout(() => {
    all = undefined
    if (isDueAgain) planAll()
  }, PAUSE_AFTER_RESET_MS)
}

/** Keeps what is shown as it is on the server. */
export function useRefresh(): void {
  useEffect(startLive, [])
  useIdle(planAll)
  useLive(({ action }) => {
    const [subject = ''] = action.split('.')
    plan(SHOWN[subject as keyof typeof SHOWN] ?? [])
  }, planAll)
}
