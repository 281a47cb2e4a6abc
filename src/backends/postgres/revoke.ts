import { setTimeout as delay } from 'node:timers/promises'
import { denied } from '../../domain/backend-error.ts'
import { DEPENDED_ON, stateOf, toBackendError } from './faults.ts'
import { invoke, replyOf } from './invoke.ts'
import { creatorSchema } from './plan.ts'
import { explainAbsent, type Server } from './server.ts'
import { quoteIdentifier, quoteLiteral } from './statements.ts'
import type { Upstream } from './upstream.ts'

const PAUSE_MS = 25

/**
 * `XX000` "tuple concurrently updated", serialisation, deadlock; `2BP01`: a concurrent grant in another database;
 * `42704`, and `22023` from SET ROLE: another attempt has dropped the role, which the next round finds; `23505`: another attempt
 * joined it.
 */
const AGAIN = new Set(['XX000', '40001', '40P01', '2BP01', '42704', '22023', '23505'])
const FAILURES = 5
/** Of steps: five seconds of pauses, or of waiting for a lock of 250 ms. */
const STEPS = 200
const LOCKED_STEPS = 20

interface Prepared {
  readonly gid: string
  readonly database: string
  readonly owner: string
}

/** See `revoke` in procedures.ts. */
type Step =
  | { readonly state: 'gone' | 'disabled' | 'again' | 'sessions' }
  | { readonly state: 'prepared'; readonly prepared: readonly Prepared[] }
  | { readonly state: 'owned'; readonly databases: readonly string[] }

type Disowned =
  | { readonly state: 'done' | 'more' }
  | { readonly state: 'kept'; readonly code: string; readonly message: string }

/**
 * Ends a role: no new login, no open session, nothing owned or granted in any database, no role. Sessions outlive both
 * VALID UNTIL and DROP ROLE, hence the order. A role that does not exist is success. Throws `BackendError`; completed steps
 * stay done, and the next call continues from there.
 */
export async function revokeRole(upstream: Upstream, role: string, signal: AbortSignal): Promise<void> {
  const { revoking, settings } = upstream
  let [failures, locked, disowned] = [0, 0, false]
  for (let steps = 0; steps < STEPS; steps += 1) {
    try {
      const server = await upstream.server(revoking, signal)
      const statements = revokeStatements(server, role)
      const rows = await revoking.transact(settings.database, signal, statements)
      const step = replyOf<Step>(rows)
      if (step.state === 'gone') {
        if (rows[0]?.['remains'] === false) return
        throw denied('The role is still there, although PostgreSQL has dropped it.')
      }
      if (step.state === 'sessions') await pause(signal)
      if (step.state === 'prepared') await rollBack(upstream, step.prepared, signal)
      if (step.state === 'again' && ++locked > LOCKED_STEPS) {
        throw denied('Another transaction holds the lock of the role.')
      }
      if (step.state === 'owned') {
        // What another role granted only that role, or a superuser, can revoke.
        if (disowned) throw denied(DEPENDED_ON)
        for (const database of step.databases) await disownIn(upstream, database, role, signal)
        disowned = true
      }
    } catch (error) {
      failures += 1
      if (failures >= FAILURES || !AGAIN.has(stateOf(error) ?? '')) throw toBackendError(error, signal)
      await pause(signal)
    }
  }
  throw denied('Sessions of the role do not end.')
}

/** One step, and a look of its own at the role, after whatever has carried out the step. */
export function revokeStatements(server: Server, role: string): readonly string[] {
  const [step = ''] = invoke(server.way, 'revoke', { p_role: role, p_schema: creatorSchema(server) })
  const kept = server.way === 'functions' ? `SELECT set_config('mayfly.reply', (${step}), true)` : step
  const remains = `EXISTS (SELECT FROM pg_roles WHERE rolname = ${quoteLiteral(role)})`
  return [kept, `SELECT current_setting('mayfly.reply') AS reply, ${remains} AS remains`]
}

/**
 * Rolls back what the role has prepared for a two-phase commit: it outlives sessions, keeps its locks, and could still be
 * committed. By its owner, in its database, outside a transaction; our login has become a member.
 */
async function rollBack({ revoking }: Upstream, prepared: readonly Prepared[], signal: AbortSignal) {
  for (const { gid, database, owner } of prepared) {
    await revoking.use(database, signal, async (session) => {
      await session.query(`SET ROLE ${quoteIdentifier(owner)}`)
      await session.query(`ROLLBACK PREPARED ${quoteLiteral(gid)}`)
      await session.query('RESET ROLE')
    })
  }
}

/** Some at a time. Throws `BackendError` when something has to stay. */
async function disownIn(upstream: Upstream, database: string, role: string, signal: AbortSignal) {
  const { revoking, settings } = upstream
  const server = await upstream.server(revoking, signal)
  const statements = invoke(server.way, 'disown', { p_role: role, p_reassign: settings.reassign_owned_to })
  let reply: Disowned
  const disown = () =>
    revoking.transact(database, signal, statements).catch((error: unknown) => {
      throw explainAbsent(server, database, error)
    })
  do reply = replyOf<Disowned>(await disown())
  while (reply.state === 'more')
  if (reply.state === 'kept') {
    throw denied(DEPENDED_ON, { detail: `${reply.code}: ${reply.message}` })
  }
}

/** Ends early with the signal, which the next call then reports. */
async function pause(signal: AbortSignal): Promise<void> {
  await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined)
}
