import type { OpenBackend } from '../../backends/open-backends.ts'
import { Problem } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { callOnce, describe } from './call-upstream.ts'
import { reasonOfCheck } from './health.ts'
import { readAnyBackend } from './list-backends.ts'

/** A checked backend, and what its kind warns of. */
export interface Checked {
  readonly backend: OpenBackend
  readonly warnings: readonly string[]
}

/**
 * Logs in to the upstream and asks what issuing needs; changes nothing there. An open breaker does not stop it, and a success closes
 * both. The answer is in `core.health`. Throws `backend_not_found` and
 * `insufficient_scope`.
 */
export async function checkBackend(core: Core, actor: Actor, name: string): Promise<Checked> {
  requireWhole(core, actor)
  const backend = await readAnyBackend(core, actor.caller, name)
  const { warnings } = await checkUpstream(core, backend)
  const { state, lastFailureReason } = core.health.of(backend)
  const details = { state, ...(state === 'down' && { reason: lastFailureReason }) }
  const entry = audit(core, actor, { action: 'backend.checked', backend: backend.name, details })
  const outcome = await commit(core, actor, [entry], { code: 'audit_unavailable' })
  if (!outcome.done) throw new Problem('conflict')
  return { backend, warnings }
}

/** What a check found. It is in `core.health`, too. */
export interface Found {
  readonly warnings: readonly string[]
  /** Why it failed. */
  readonly error?: unknown
}

/** Checks of one backend at the same time are one. */
export function checkUpstream(core: Core, backend: OpenBackend): Promise<Found> {
  const key = `check|${backend.uid}|${backend.version}`
  return underWay(core).get(key) ?? begin(core, backend, key)
}

type Running = Map<string, Promise<Found>>
const running = new WeakMap<Core['health'], Running>()

function underWay({ health }: Core): Running {
  const known = running.get(health) ?? new Map()
  running.set(health, known)
  return known
}

function begin(core: Core, backend: OpenBackend, key: string): Promise<Found> {
  const checks = underWay(core)
  const check = askUpstream(core, backend).finally(() => checks.delete(key))
  checks.set(key, check)
  return check
}

async function askUpstream(core: Core, backend: OpenBackend): Promise<Found> {
  const begunAt = core.store.now()
  try {
    const warnings = await callOnce(core, backend, (instance, signal) => instance.check(signal))
    backend.breakers.issuing.close()
    backend.breakers.revoking.close()
    core.health.succeeded(backend)
    return { warnings }
  } catch (error) {
    core.health.failed(backend, begunAt, {
      reason: reasonOfCheck(error),
      detail: describe(error),
      isCertain: true,
    })
    return { warnings: [], error }
  }
}
