import type { RecordedRequest } from '../../../../src/client/wire.ts'
import { sizeOf } from '../../ui/sizes.ts'
import type { Look } from '../../ui/status.tsx'
import { duration } from '../../ui/times.ts'
import type { Run } from './run.ts'

export type Decision = RecordedRequest['decision']

/** What became of it: a shape, and a word. */
const DECISIONS: Readonly<Record<Decision, readonly [look: Look, word: string]>> = {
  injected: ['ok', 'with the secret'],
  forwarded: ['off', 'without a secret'],
  tunnelled: ['off', 'tunnel, unseen'],
  refused: ['wait', 'refused'],
  misused: ['bad', 'placeholder misused'],
}

/** A newer server may know more decisions. */
const decisionOf = (decision: string): readonly [look: Look, word: string] =>
  DECISIONS[decision as Decision] ?? ['off', decision]

export const lookOf = ({ decision }: Pick<RecordedRequest, 'decision'>): Look => decisionOf(decision)[0]

export const wordOf = (decision: string): string => decisionOf(decision)[1]

/** The choices of the filter: the server shows what was misused with what was refused, too. */
export const CHOICES: readonly (readonly [decision: Decision, name: string])[] = [
  ['refused', 'Refused or misused'],
  ['misused', 'Placeholder misused'],
  ['injected', 'With the secret'],
  ['forwarded', 'Without a secret'],
  ['tunnelled', 'Tunnels'],
]

/** `GET api.github.com/repos/*`, `postgres db.example.com:5432`. */
export function targetOf({ method, authority, path, protocol }: RecordedRequest): string {
  return `${method ?? protocol} ${authority}${path ?? ''}`
}

/** `403`; in words where none came although one was due. */
export function replyOf({ status, protocol, decision }: Omitted): string {
  if (status !== null) return String(status)
  return protocol === 'http' && (decision === 'injected' || decision === 'forwarded') ? 'no reply' : ''
}
type Omitted = Pick<RecordedRequest, 'status' | 'protocol' | 'decision'>

/** What else is known, for a line below. */
export function factsOf(request: RecordedRequest): string[] {
  const { bytes_sent: sent, bytes_received: received, redacted, duration_ms: ms } = request
  return [
    ...(request.reason === null ? [] : [request.reason]),
    `${sizeOf(sent)} out, ${sizeOf(received)} in, ${took(ms)}`,
    ...(redacted === 0 ? [] : [`${redacted.toLocaleString('en')} masked in the reply`]),
  ]
}

/** `250 ms`, `2.5 s`, `1m 30s`. */
export function took(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : duration(ms / 1_000)
}

/** Since the start of its run: `+1m 3s`. */
export const sinceStart = ({ at }: Pick<RecordedRequest, 'at'>, run: Pick<Run, 'started_at'>): string =>
  `+${duration(Math.max(0, Date.parse(at) - Date.parse(run.started_at)) / 1_000)}`

const AGAIN_MS = 2_000
/** Most runs have no proxy. */
const NONE_AGAIN_MS = 5_000
/** Many pages are all read again, so less often. */
const MANY = 100
const MANY_AGAIN_MS = 10_000
/** The last lines come after the end of a run. */
const LATE_MS = 60_000

/** In how many ms the list is read again. */
export function againAfter(run: Pick<Run, 'ended_at'>, shown: number, now: number): number | false {
  if (run.ended_at !== null && now - Date.parse(run.ended_at) > LATE_MS) return false
  if (shown === 0) return NONE_AGAIN_MS
  return shown > MANY ? MANY_AGAIN_MS : AGAIN_MS
}
