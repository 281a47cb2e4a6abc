import type { Reason } from '../rules/refusals.ts'
import type { Decision, RequestLine } from '../types.ts'
import type { Failure } from './failure.ts'
import type { TrafficParts } from './parts.ts'

/** What is known so far of one request; recorded once, at its end. */
export interface Line {
  authority: string
  path: string | null
  status: number | null
  bytesSent: number
  bytesReceived: number
  decision: Decision
  reason: Reason | null
  backend: string | null
  credentialId: string | null
  placeholder: string | null
  redacted: number
  /** What is to be done before it is recorded. */
  beforeEnd: (() => void) | undefined
  /** Stops what is under way. */
  abort: ((failure: Failure) => void) | undefined
  end(): void
}

/** Authorities as the record has them: without the port of https. */
const DEFAULT_PORT = /:443$/

export function beginLine(
  { recorder, now }: Pick<TrafficParts, 'recorder' | 'now'>,
  of: {
    readonly method: string | null
    readonly authority: string
    readonly protocol?: RequestLine['protocol']
  },
): Line {
  const at = now()
  const began = performance.now()
  let isOver = false
  const line: Line = {
    authority: of.authority,
    path: null,
    status: null,
    bytesSent: 0,
    bytesReceived: 0,
    decision: 'refused',
    reason: null,
    backend: null,
    credentialId: null,
    placeholder: null,
    redacted: 0,
    beforeEnd: undefined,
    abort: undefined,
    end() {
      if (isOver) return
      isOver = true
      line.beforeEnd?.()
      recorder.record({
        at,
        protocol: of.protocol ?? 'http',
        method: of.method,
        authority: line.authority.replace(DEFAULT_PORT, ''),
        path: line.path,
        status: line.status,
        bytesSent: line.bytesSent,
        bytesReceived: line.bytesReceived,
        durationMs: Math.round(performance.now() - began),
        decision: line.decision,
        reason: line.reason,
        backend: line.backend,
        credentialId: line.credentialId,
        placeholder: line.placeholder,
        redacted: line.redacted,
      })
    },
  }
  return line
}
