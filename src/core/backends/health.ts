import { isDeepStrictEqual } from 'node:util'
import type { BackendDefinition } from '../../backends/open-backends.ts'
import { DeadlineError } from '../../domain/abort.ts'
import { BackendError } from '../../domain/backend-error.ts'
import type { BackendHealth, HealthReason } from '../../domain/backend-health.ts'
import type { Log } from '../../log/log.ts'
import type { Health, HealthChange, HealthOf } from '../parts.ts'

interface Entry {
  version: number
  config: BackendDefinition['config']
  /** The latest verdict, also on a configuration that has changed since. */
  state: 'up' | 'down' | 'unknown'
  /** Epoch ms. */
  lastSuccess: number | undefined
  lastFailure: number | undefined
  reason: HealthReason | undefined
  detail: string | undefined
}

/** Longest text of an upstream that is kept. */
const MAX_DETAIL = 500
const OUTAGES = new Set<HealthReason>(['timeout', 'refused', 'unreachable', 'tls', 'login_failed'])

/**
 * The health of every backend, from what real calls and checks say, in the memory of this node. It logs a change of state once. A
 * listener of `onChange` that throws is logged, and hurts nobody.
 */
export function createHealth({ log, now }: { readonly log: Log; readonly now: () => number }): Health {
  const entries = new Map<string, Entry>()
  const listeners = new Set<(change: HealthChange) => void>()

  /** A late answer to a configuration that is no longer the newest says nothing. */
  function entryFor({ uid, version, config }: HealthOf): Entry | undefined {
    const found = entries.get(uid)
    if (found === undefined) {
      const made: Entry = { version, config, state: 'unknown', ...NEVER }
      entries.set(uid, made)
      return made
    }
    if (version < found.version) return undefined
    if (version > found.version) Object.assign(found, { version, config })
    return found
  }

  function turn(backend: HealthOf, entry: Entry, to: 'up' | 'down'): void {
    const from = entry.state
    if (from === to) return
    entry.state = to
    const { uid, name } = backend
    const reason = to === 'down' ? entry.reason : undefined
    if (to === 'down')
      log.warn({ backend: name, reason, detail: entry.detail }, 'the upstream of the backend is down')
    else if (from === 'down') log.info({ backend: name }, 'the upstream of the backend is up again')
    const change: HealthChange = { backend: { uid, name }, from, to, reason, at: now() }
    for (const listener of listeners) {
      try {
        listener(change)
      } catch (error) {
        log.error({ err: error, backend: name }, 'a change of health could not be passed on')
      }
    }
  }

  return {
    succeeded(backend) {
      const entry = entryFor(backend)
      if (entry === undefined) return
      entry.lastSuccess = now()
      if (entry.state !== 'up') turn(backend, entry, 'up')
    },
    failed(backend, begunAt, { reason, detail, isCertain = reason === 'login_failed' }) {
      const entry = entryFor(backend)
      if (entry === undefined) return
      Object.assign(entry, { lastFailure: now(), reason, detail: detail.slice(0, MAX_DETAIL) })
      // Of calls at the same time, one that succeeds shows that the upstream works.
      if (isCertain || entry.lastSuccess === undefined || entry.lastSuccess <= begunAt)
        turn(backend, entry, 'down')
    },
    of(backend) {
      const entry = entries.get(backend.uid)
      return entry === undefined ? { state: unused(backend), ...SHOWN_NEVER } : shown(backend, entry)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    keepOnly(uids) {
      for (const uid of entries.keys()) if (!uids.has(uid)) entries.delete(uid)
    },
  }
}

const NEVER = { lastSuccess: undefined, lastFailure: undefined, reason: undefined, detail: undefined }
const SHOWN_NEVER = {
  lastSuccess: undefined,
  lastFailure: undefined,
  lastFailureReason: undefined,
  lastFailureDetail: undefined,
}

type Shown = Parameters<Health['of']>[0]

function shown(backend: Shown, entry: Entry): BackendHealth {
  const times = {
    lastSuccess: entry.lastSuccess,
    lastFailure: entry.lastFailure,
    lastFailureReason: entry.reason,
    lastFailureDetail: entry.detail,
  }
  if (backend.config === undefined) return { ...times, state: 'down', lastFailureReason: 'misconfigured' }
  const isSame = entry.version >= backend.version || isDeepStrictEqual(entry.config, backend.config)
  return { ...times, state: isSame ? entry.state : unused(backend) }
}

/** A kind without an upstream works wherever its configuration can be opened. */
function unused({ config, kind }: Shown): BackendHealth['state'] {
  if (config === undefined) return 'down'
  return kind.upstream ? 'unknown' : 'up'
}

/**
 * What a failed call of an agent says of the upstream; `undefined`: nothing. A refusal may be the agent's fault: it asked for a scope
 * that the upstream does not know.
 */
export function reasonOfCall(error: unknown): HealthReason | undefined {
  if (error instanceof DeadlineError) return 'timeout'
  if (!(error instanceof BackendError)) return undefined
  if (error.fault === 'timeout') return 'timeout'
  if (error.fault === 'unavailable') return error.reason ?? 'unavailable'
  if (error.isLogin) return 'login_failed'
  return error.reason !== undefined && OUTAGES.has(error.reason) ? error.reason : undefined
}

/** What a failed check or revocation says: there, every failure is one of the backend. */
export function reasonOfCheck(error: unknown): HealthReason {
  const known = reasonOfCall(error)
  if (known !== undefined) return known
  if (!(error instanceof BackendError)) return 'failed'
  return error.reason ?? (error.fault === 'denied' ? 'permission_missing' : 'misconfigured')
}
