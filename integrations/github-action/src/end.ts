import type { AccessToken } from '../../../src/client/access-tokens.ts'
import { MayflyError } from '../../../src/client/errors.ts'
import type { Runner } from './runner.ts'
import { claimSession, clientOf, type Place } from './session.ts'

const PATIENCE_MS = 30_000

/**
 * Ends the run with everything that was issued for it, and the login: the agent goes on only if another login uses it.
 * Throws as the client does.
 */
export async function endSession(given: Runner, directory: string): Promise<void> {
  const session = claimSession(directory)
  if (session === undefined) return
  await end(given, session, session.run, session.token)
}

async function end(
  given: Runner,
  place: Place,
  run: string | undefined,
  kept: AccessToken | undefined,
): Promise<void> {
  let token = kept
  const client = clientOf(given.env, place, {
    load: async () => token,
    save: async (next) => {
      token = next
    },
  })
  const signal = AbortSignal.timeout(PATIENCE_MS)
  const results = await Promise.allSettled([
    run === undefined ? undefined : endRun(() => client.runs.end(run, { signal })),
  ])
  // Without a token there is no login to end.
  if (token !== undefined) await client.logOut({ signal })
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/** It may have ended with its agent. */
async function endRun(ask: () => Promise<unknown>): Promise<void> {
  try {
    await ask()
  } catch (error) {
    if (!(error instanceof MayflyError) || !['gone', 'not_found'].includes(error.code)) throw error
  }
}
