import { type Decision, isRefused, type RequestCounts, type RunRequest } from '../../domain/run-request.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { Tables } from '../schema/rows.ts'
import { among } from './among.ts'

/** A batch of lines as it is kept. */
export interface Batch {
  readonly id: string
  readonly lines: readonly RunRequest[]
}

/** How many lines of a batch match, by its id. */
export interface Weight {
  readonly id: string
  readonly count: number
}

/** What is added for one batch. */
export interface NewBatch {
  readonly runId: string
  readonly id: string
  /** Of whoever sent it. */
  readonly batch: string
  readonly at: number
  readonly kept: readonly RunRequest[]
  /** Also of lines that are not kept. */
  readonly counts: RequestCounts
}

/** What proxies told of the requests of runs. */
export function createRunRequests(engine: Engine) {
  const { build, read } = engine
  return {
    /** The batches that have lines that were refused, or any, newest first, up to `last`, inclusive. */
    weights: (
      runId: string,
      { last, isRefused: only }: { readonly last: string | undefined; readonly isRefused: boolean },
      limit: number,
    ): Promise<Weight[]> => {
      let query = build
        .selectFrom('run_requests')
        .select(['id', only ? 'refused as count' : 'count'])
        .where('run_id', '=', runId)
        .where(only ? 'refused' : 'count', '>', 0)
      if (last !== undefined) query = query.where('id', '<=', last)
      return read<Weight>(query.orderBy('id', 'desc').limit(limit))
    },
    /** Of these batches, newest first. */
    lines: async (runId: string, ids: readonly string[]): Promise<Batch[]> => {
      const query = build.selectFrom('run_requests').select(['id', 'lines']).where('run_id', '=', runId)
      const rows = await read<{ id: string; lines: string }>(
        query.where(among(engine, ids)).orderBy('id', 'desc'),
      )
      return rows.map(({ id, lines }) => ({ id, lines: (JSON.parse(lines) as Line[]).map(decode) }))
    },
    counts: async (runIds: readonly string[]): Promise<Map<string, RequestCounts>> => {
      const query = build.selectFrom('run_request_counts').selectAll()
      const rows = await read<Tables['run_request_counts']>(query.where(among(engine, runIds, 'run_id')))
      return new Map(rows.map(({ run_id, ...counts }) => [run_id, counts]))
    },
    ...steps(engine),
  }
}

function steps(engine: Engine) {
  const { build, read } = engine
  return {
    /** Refused as not unique where this batch is recorded already. */
    add: ({ runId, id, batch, at, kept, counts }: NewBatch): Step[] => [
      insert('run_requests', {
        run_id: runId,
        id,
        batch,
        at,
        count: kept.length,
        refused: kept.filter(isRefused).length,
        lines: JSON.stringify(kept.map(encode)),
      }),
      run(
        build
          .insertInto('run_request_counts')
          .values({ run_id: runId, ...counts })
          .onConflict((conflict) =>
            conflict.column('run_id').doUpdateSet((e) => ({
              total: e('run_request_counts.total', '+', e.ref('excluded.total')),
              kept: e('run_request_counts.kept', '+', e.ref('excluded.kept')),
              refused: e('run_request_counts.refused', '+', e.ref('excluded.refused')),
              redacted: e('run_request_counts.redacted', '+', e.ref('excluded.redacted')),
            })),
          ),
        1,
      ),
    ],
    /** Ids of batches of these runs, in no order. */
    someOf: async (runIds: readonly string[], limit: number): Promise<string[]> => {
      const query = build
        .selectFrom('run_requests')
        .select('id')
        .where(among(engine, runIds, 'run_id'))
      return (await read<{ id: string }>(query.limit(limit))).map(({ id }) => id)
    },
    /** Batches of these runs. */
    drop: (runIds: readonly string[], ids: readonly string[]): Step =>
      run(
        build
          .deleteFrom('run_requests')
          .where(among(engine, runIds, 'run_id'))
          .where(among(engine, ids)),
        'any',
      ),
    dropCounts: (runIds: readonly string[]): Step =>
      run(build.deleteFrom('run_request_counts').where(among(engine, runIds, 'run_id')), 'any'),
  }
}

/** As it is kept: a third of what it takes with its names. Only ever add to its end. */
type Line = readonly [
  at: number,
  protocol: RunRequest['protocol'],
  method: string | null,
  authority: string,
  path: string | null,
  status: number | null,
  bytesSent: number,
  bytesReceived: number,
  durationMs: number,
  decision: Decision,
  reason: string | null,
  backend: string | null,
  credentialId: string | null,
  placeholder: string | null,
  redacted: number,
]

function encode(one: RunRequest): Line {
  return [
    one.at,
    one.protocol,
    one.method,
    one.authority,
    one.path,
    one.status,
    one.bytesSent,
    one.bytesReceived,
    one.durationMs,
    one.decision,
    one.reason,
    one.backend,
    one.credentialId,
    one.placeholder,
    one.redacted,
  ]
}

function decode(line: Line): RunRequest {
  const [at, protocol, method, authority, path, status, bytesSent, bytesReceived, durationMs, ...rest] = line
  const [decision, reason, backend, credentialId, placeholder, redacted] = rest
  return {
    at,
    protocol,
    method,
    authority,
    path,
    status,
    bytesSent,
    bytesReceived,
    durationMs,
    decision,
    reason,
    backend,
    credentialId,
    placeholder,
    redacted,
  }
}
