import type { Backend, Fault } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/registry.ts'
import { Problem, type ProblemCode } from '../../domain/problems.ts'
import type { Core } from '../context.ts'

/**
 * One call to a backend: through its breaker, within the server's own deadline whatever the caller's connection
 * does. Throws what `work` throws, or `DeadlineError`.
 */
export async function callUpstream<T>(
  core: Pick<Core, 'settings'>,
  backend: OpenBackend,
  work: (instance: Backend, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const wait = backend.breaker.enter()
  if (wait > 0) throw new NotAsked(wait)
  try {
    const result = await withDeadline(core.settings.upstreamTimeoutMs, async (signal) =>
      work(await backend.connect(), signal),
    )
    backend.breaker.succeeded()
    return result
  } catch (error) {
    if (isOutage(error)) backend.breaker.failed()
    else backend.breaker.succeeded()
    throw error
  }
}

/** The breaker is open: nothing has been tried. */
export class NotAsked extends Problem {
  readonly waitMs: number

  constructor(retryAfterSeconds: number) {
    super('backend_unavailable', { retryAfterSeconds })
    this.waitMs = retryAfterSeconds * 1_000
  }
}

/** Waits `ms` for the work, even where it ignores its signal. Throws what it throws, or `DeadlineError`. */
export async function withDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new DeadlineError()
      reject(error)
      deadline.abort(error)
    }, ms)
  })
  try {
    return await Promise.race([work(deadline.signal), late])
  } finally {
    clearTimeout(timer)
  }
}

export class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}

function faultOf(error: unknown): Fault | undefined {
  if (!(error instanceof Error)) return undefined
  if (error.name === 'DeadlineError') return 'timeout'
  return error.name === 'BackendError' && 'fault' in error ? (error.fault as Fault) : undefined
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

/** Upstream text never reaches the caller: it is the problem's `detail`, for the log. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  const fault = faultOf(error)
  const detail = describe(error)
  if (fault === undefined) return new Problem('backend_error', { cause: error, detail })
  if (fault === 'unsupported')
    return new Problem('invalid_request', { message: (error as Error).message, detail, cause: error })
  const retry = fault === 'unavailable' ? { retryAfterSeconds: 5 } : {}
  return new Problem(CODES[fault], { cause: error, detail, ...retry })
}

/** Nothing was created: the upstream said no, or was not asked. Whatever else went wrong leaves that unknown. */
export function refusedForCertain(error: unknown): boolean {
  if (error instanceof Problem) return error.code === 'backend_unavailable'
  return ['denied', 'misconfigured', 'unsupported'].includes(faultOf(error) ?? '')
}

/** Epoch ms after which an upstream call begun at `now` cannot be under way any more. */
export function certainAt(core: Pick<Core, 'settings'>, now: number): number {
  return now + 2 * core.settings.upstreamTimeoutMs
}

/** For the log: the kind's own words and the upstream's. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const detail = 'detail' in error && typeof error.detail === 'string' ? `: ${error.detail}` : ''
  return `${error.message}${detail}`
}
