import type { Backend } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import { DeadlineError, withDeadline } from '../../domain/abort.ts'
import { BackendError, type Fault } from '../../domain/backend-error.ts'
import { Problem, type ProblemCode, type ProblemOptions } from '../../domain/problems.ts'
import type { Core } from '../context.ts'
import { reasonOfCall } from './health.ts'

type Direction = keyof OpenBackend['breakers']
type Pass = NonNullable<ReturnType<OpenBackend['breakers'][Direction]['enter']>>
type Work<T> = (instance: Backend, signal: AbortSignal) => Promise<T>

/** What work returns that had nothing to ask of the upstream: it says nothing of it. */
export const UNASKED = Symbol('unasked')

/** A call that the breaker let through. It must be made, or cancelled. */
export interface Entered {
  readonly direction: Direction
  readonly pass: Pass
}

/** Throws `BreakerOpen`. */
export function enterUpstream({ breakers }: OpenBackend, direction: Direction): Entered {
  const pass = breakers[direction].enter()
  if (pass === undefined) throw new BreakerOpen(Math.max(1, breakers[direction].wait()))
  return { direction, pass }
}

/**
 * One call to a backend that was entered, within the server's own deadline, even if the caller's connection is lost. Throws what
 * `work` throws, or `DeadlineError`.
 */
export async function callEntered<T>(
  core: CallParts,
  backend: OpenBackend,
  entered: Entered,
  work: Work<T>,
): Promise<T> {
  const begunAt = core.store.now()
  try {
    const result = await callOnce(core, backend, work)
    if (result === UNASKED) entered.pass.cancel()
    else {
      entered.pass.answered()
      core.health.succeeded(backend)
    }
    return result
  } catch (error) {
    report(entered, error)
    const reason = reasonOfCall(error)
    if (reason !== undefined && !(reason === 'timeout' && entered.direction === 'revoking'))
      core.health.failed(backend, begunAt, { reason, detail: describe(error) })
    throw error
  }
}

/** Whether the log has said already, when the state changed, why this call failed. */
export function isToldAlready(core: Pick<Core, 'health'>, backend: OpenBackend, error: unknown): boolean {
  return reasonOfCall(error) !== undefined && core.health.of(backend).state === 'down'
}

/**
 * What a failed call says about the upstream. The holder of an account can make its revocation wait, so a timeout there says
 * nothing.
 */
function report({ direction, pass }: Entered, error: unknown): void {
  const fault = faultOf(error)
  if (fault === undefined || (fault === 'timeout' && direction === 'revoking')) pass.cancel()
  else if (isOutage(error)) pass.failed('outage')
  else if (error instanceof BackendError && error.isLogin) pass.failed('login')
  else pass.answered()
}

/**
 * One call within the server's own deadline. Where the upstream refuses the login, its secrets may have been replaced since
 * `backend` was read, or be replaced at this moment (ADR 0033): then the work is done again with the others. `denied` means
 * that it had no effect.
 */
export async function callOnce<T>(core: OnceParts, backend: OpenBackend, work: Work<T>): Promise<T> {
  return withDeadline(core.settings.upstreamTimeoutMs, async (signal) => {
    const first = await backend.connect()
    try {
      return await work(first, signal)
    } catch (error) {
      if (faultOf(error) !== 'denied') throw error
      const newest = (await core.backends.at(await core.store.generation())).byUid.get(backend.uid) ?? backend
      const preferred = await newest.connect()
      for (const other of [preferred, await newest.connectOther(preferred)]) {
        if (other === undefined || other === first) continue
        try {
          const result = await work(other, signal)
          newest.prefer(other)
          return result
        } catch (again) {
          if (faultOf(again) !== 'denied') throw again
        }
      }
      throw error
    }
  })
}

type OnceParts = Pick<Core, 'settings' | 'backends' | 'store'>
type CallParts = OnceParts & Pick<Core, 'health'>

/** The breaker is open: nothing was tried. */
export class BreakerOpen extends Problem {
  constructor(retryAfterSeconds: number) {
    // What opened the breaker is in the log.
    super('backend_unavailable', { retryAfterSeconds, logged: true })
  }
}

function faultOf(error: unknown): Fault | undefined {
  if (error instanceof DeadlineError) return 'timeout'
  return error instanceof BackendError ? error.fault : undefined
}

function isOutage(error: unknown): boolean {
  const fault = faultOf(error)
  return fault === 'unavailable' || fault === 'timeout'
}

const CODES: Record<Fault, ProblemCode> = {
  unavailable: 'backend_unavailable',
  timeout: 'backend_timeout',
  denied: 'backend_error',
  misconfigured: 'backend_error',
  unsupported: 'invalid_request',
}

/** Upstream text never reaches the caller: it becomes the problem's `detail`, for the log. */
export function asProblem(error: unknown, options: Pick<ProblemOptions, 'logged'> = {}): Problem {
  if (error instanceof Problem) return error
  const fault = faultOf(error)
  const detail = describe(error)
  if (fault === undefined) return new Problem('backend_error', { cause: error, detail, ...options })
  if (fault === 'unsupported')
    return new Problem('invalid_request', {
      message: (error as Error).message,
      detail,
      cause: error,
      ...options,
    })
  const retry = fault === 'unavailable' ? { retryAfterSeconds: 5 } : {}
  return new Problem(CODES[fault], { cause: error, detail, ...retry, ...options })
}

/** The upstream refused, so nothing exists there. Every other error leaves that unknown. */
export function isRefusal(error: unknown): boolean {
  const fault = faultOf(error)
  return fault !== undefined && !isOutage(error)
}

/** Epoch ms after which an upstream call that began at `now` can no longer be under way. */
export function certainAt(core: Pick<Core, 'settings'>, now: number): number {
  return now + 2 * core.settings.upstreamTimeoutMs
}

/** For the log: the words of the kind and of the upstream. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const detail = 'detail' in error && typeof error.detail === 'string' ? `: ${error.detail}` : ''
  return `${error.message}${detail}`
}

/** Epoch ms until which the sweepers leave a credential to the attempt to settle it that began at `now`. */
export function claimedUntil(core: Pick<Core, 'settings'>, now: number): number {
  return now + 3 * core.settings.upstreamTimeoutMs
}
