import type { Authorizer } from './authorize.ts'
import { MayflyError, UnreachableError } from './errors.ts'
import { readEvents } from './events.ts'
import { type CallOptions, pathPart } from './send.ts'
import type { RunAlive, RunState } from './wire.ts'

/** Reads `GET /v1/runs/:id/events`. */
export type RunEvent =
  /** Comes first, and again whenever it has changed. */
  | ({ readonly kind: 'state' } & RunState)
  /** The server can tell, and the last state is still true. */
  | ({ readonly kind: 'alive' } & RunAlive)

export interface RunEventOptions extends CallOptions {
  /** Without a word for so long, the connection counts as broken: 15 s by default. */
  readonly silentMs?: number | undefined
}

const SILENT_MS = 15_000

/**
 * Which credentials of a run live, and that the server can tell, over one connection: it returns when the run has ended, and throws
 * when the connection breaks, ends early or falls silent. Whoever calls it again begins with the state, and has missed nothing.
 * Throws `not_found` for a run of another agent.
 */
export async function* followRun(
  authorizer: Pick<Authorizer, 'stream'>,
  id: string,
  { signal, silentMs = SILENT_MS }: RunEventOptions = {},
): AsyncGenerator<RunEvent, void, undefined> {
  const headers = { accept: 'text/event-stream' }
  const path = `/v1/runs/${pathPart(id)}/events`
  const { body } = await authorizer.stream({ method: 'GET', path, headers, signal })
  try {
    for await (const { event, data } of readEvents(body, silentMs)) {
      if (event === 'alive') yield { kind: 'alive', ...(JSON.parse(data) as RunAlive) }
      if (event !== 'state') continue
      const state = JSON.parse(data) as RunState
      yield { kind: 'state', ...state }
      if (state.run.state === 'ended') return
    }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof MayflyError || error instanceof UnreachableError) throw error
    throw unexpected('The stream of the run broke.', error)
  }
  throw unexpected('The stream of the run ended before the run.')
}

function unexpected(message: string, cause?: unknown): MayflyError {
  return Object.assign(new MayflyError({ code: 'unexpected_reply', status: 0, message }), { cause })
}
