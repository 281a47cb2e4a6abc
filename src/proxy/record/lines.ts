import type { RequestLine as Line } from '../../client/wire.ts'
import { MAX_LINES } from '../../domain/run-request.ts'
import type { RequestLine } from '../types.ts'

/** A line in the form of the interface, and its size there. */
export interface WireLine {
  readonly line: Line
  readonly bytes: number
}

/** The server takes 64 KiB, with what stands around the lines. */
const MAX_BATCH_BYTES = 60_000

export function lineOnWire(line: RequestLine): WireLine {
  const wire: Line = {
    at: new Date(line.at).toISOString(),
    protocol: line.protocol,
    method: textOf(line.method, 32),
    authority: textOf(line.authority, 255) ?? '-',
    path: textOf(line.path, 512),
    status: line.status === null ? null : Math.min(amount(line.status), HIGHEST_STATUS),
    bytes_sent: amount(line.bytesSent),
    bytes_received: amount(line.bytesReceived),
    duration_ms: amount(line.durationMs),
    decision: line.decision,
    reason: textOf(line.reason, 64),
    backend: textOf(line.backend, 128),
    credential_id: textOf(line.credentialId, 64),
    placeholder: textOf(line.placeholder, 200),
    redacted: amount(line.redacted),
  }
  // All of it is ASCII.
  return { line: wire, bytes: JSON.stringify(wire).length + 1 }
}

/** The first lines that fit into one batch; at least one. */
export function takeBatch<T extends WireLine>(
  lines: readonly T[],
): { readonly batch: Line[]; readonly rest: T[] } {
  let bytes = 0
  let count = 0
  for (const line of lines.slice(0, MAX_LINES)) {
    bytes += line.bytes
    if (count > 0 && bytes > MAX_BATCH_BYTES) break
    count += 1
  }
  return { batch: lines.slice(0, count).map(({ line }) => line), rest: lines.slice(count) }
}

/** As the server takes it: it refuses a whole batch for one line with anything else. */
const VISIBLE = /^[\x21-\x7e]*$/
const NOT_VISIBLE = /[^\x21-\x7e]+/g
const HIGHEST_STATUS = 999

/** Methods, authorities and paths come from the child. What is not visible ASCII is escaped as in a URL. */
function textOf(text: string | null, most: number): string | null {
  if (text === null || text === '') return null
  if (text.length <= most && VISIBLE.test(text)) return text
  return text.slice(0, most).toWellFormed().replace(NOT_VISIBLE, encodeURIComponent).slice(0, most)
}

const amount = (value: number) =>
  Number.isFinite(value) ? Math.max(0, Math.min(Math.round(value), Number.MAX_SAFE_INTEGER)) : 0
