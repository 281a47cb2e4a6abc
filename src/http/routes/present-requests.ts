import type { Static } from 'typebox'
import type { RequestLine, RequestBatch as WireBatch } from '../../api/run-requests.ts'
import type { RequestBatch } from '../../core/runs/record-requests.ts'
import { invalid } from '../../domain/problems.ts'
import type { RequestCounts, RunRequest } from '../../domain/run-request.ts'
import { timestamp } from './wire.ts'

/** The last time that a timestamp can show: the end of the year 9999. */
const LAST_TIME = 253_402_300_799_999

/** Throws `invalid_request` for a time that is none. */
export function readBatch({ batch, requests }: Static<typeof WireBatch>): RequestBatch {
  return { batch, requests: requests.map(readLine) }
}

function readLine(line: Static<typeof RequestLine>, index: number): RunRequest {
  const at = Date.parse(line.at)
  if (!(at >= 0 && at <= LAST_TIME)) throw invalid(`"requests[${index}].at" is not a time.`)
  return {
    at,
    protocol: line.protocol,
    method: line.method,
    authority: line.authority,
    path: line.path,
    status: line.status,
    bytesSent: line.bytes_sent,
    bytesReceived: line.bytes_received,
    durationMs: line.duration_ms,
    decision: line.decision,
    reason: line.reason,
    backend: line.backend,
    credentialId: line.credential_id,
    placeholder: line.placeholder,
    redacted: line.redacted,
  }
}

export function presentRequest(one: RunRequest) {
  return {
    at: timestamp(one.at),
    protocol: one.protocol,
    method: one.method,
    authority: one.authority,
    path: one.path,
    status: one.status,
    bytes_sent: one.bytesSent,
    bytes_received: one.bytesReceived,
    duration_ms: one.durationMs,
    decision: one.decision,
    reason: one.reason,
    backend: one.backend,
    credential_id: one.credentialId,
    placeholder: one.placeholder,
    redacted: one.redacted,
  }
}

export function presentCounts({ total, refused, redacted }: RequestCounts) {
  return { total, refused, redacted }
}
