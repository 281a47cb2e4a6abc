import type { Client } from '../../../src/client/client.ts'
import { MayflyError } from '../../../src/client/errors.ts'
import type { Runner } from './runner.ts'
import { claimSession, clientOf } from './session.ts'

const PATIENCE_MS = 30_000

/**
 * Ends the run with everything that was issued for it, and the login: the agent goes on only if another login uses it.
 * Throws as the client does.
 */
export async function endSession(given: Runner, directory: string): Promise<void> {
  const session = claimSession(directory)
  if (session === undefined) return
  let { token } = session
  const client = clientOf(given.env, session, {
    load: async () => token,
    save: async (next) => {
      token = next
    },
  })
  const signal = AbortSignal.timeout(PATIENCE_MS)
  try {
    if (session.run !== undefined) await endRun(client, session.run, signal)
  } finally {
    // Without a token there is no login to end.
    if (token !== undefined) await client.logOut({ signal })
  }
}

/** It may have ended with its agent. */
async function endRun({ runs }: Client, run: string, signal: AbortSignal): Promise<void> {
  try {
    await runs.end(run, { signal })
  } catch (error) {
    if (!(error instanceof MayflyError) || !['gone', 'not_found'].includes(error.code)) throw error
  }
}
