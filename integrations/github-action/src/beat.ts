import { keepBeating } from '../../../src/cli/run/heartbeat.ts'
import { clientOf, readSession, tokensIn } from './session.ts'

/** How often this process checks that the job still lives. */
const LOOK_MS = 2_000

/** Beats for the run of the session in `directory` until it has ended, the session is claimed, or the process `parent` is gone. */
async function beat(directory: string, parent: number | undefined): Promise<void> {
  const session = readSession(directory)
  const { run, heartbeatMs } = session ?? {}
  if (session === undefined || run === undefined || heartbeatMs === undefined) return
  const { runs } = clientOf(process.env, session, tokensIn(directory, session))
  const stop = new AbortController()
  const look = setInterval(() => {
    if (readSession(directory) === undefined || !isAlive(parent)) stop.abort(new Error('the job is over'))
  }, LOOK_MS)
  const options = { runs, id: run, intervalMs: heartbeatMs, now: Date.now, note: () => {} }
  await keepBeating(options, stop.signal)
    .catch(() => {})
    .finally(() => clearInterval(look))
}

function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it lives, as another user.
    return (error as { code?: unknown }).code !== 'ESRCH'
  }
}

const [, , directory = '', parent] = process.argv
await beat(directory, parent === undefined ? undefined : Number(parent))
