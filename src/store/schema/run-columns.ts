import { bigint, nullable, text } from './column.ts'

/** Runs, their beats, and their requests. */
export const RUN_COLUMNS = {
  runs: {
    id: text,
    agent_id: text,
    agent_name: text,
    /** What the agent says that it is for. */
    purpose: nullable(text),
    heartbeat_ms: bigint,
    /** Raised as it ends. */
    version: bigint,
    started_at: bigint,
    /** Only where the server limits how long a run lives. */
    expires_at: nullable(bigint),
    ended_at: nullable(bigint),
    reason: nullable(text),
    ended_by: nullable(text),
    /** Set as it ends. */
    last_beat: nullable(bigint),
    ip_address: nullable(text),
    user_agent: nullable(text),
  },
  /** The beats of living runs, apart from their rows: issuing holds these, and beats are written all the time. */
  run_beats: {
    run_id: text,
    heartbeat_ms: bigint,
    /** The last beat that is durable. */
    beat_at: bigint,
    /** When the job looks at it. More than three intervals after the beat: it has been looked at. */
    due_at: bigint,
  },
  /** What a proxy told of the requests of a run: a row for each batch. */
  run_requests: {
    run_id: text,
    /** Body of an id; time-ordered. */
    id: text,
    /** Of whoever sent it: a batch that is sent again is not recorded again. */
    batch: text,
    at: bigint,
    /** Of the lines that are kept. */
    count: bigint,
    refused: bigint,
    /** JSON: an array of lines, each an array (`tables/run-requests.ts`). */
    lines: text,
  },
  run_request_counts: {
    run_id: text,
    /** Of all lines, also of those that are not kept. */
    total: bigint,
    kept: bigint,
    refused: bigint,
    redacted: bigint,
  },
} as const
