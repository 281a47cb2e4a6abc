import { sessionEnd } from '../../domain/people/session.ts'
import type { AgentCaller, Caller, OperatorCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import { operatorCaller } from '../sessions/authenticate-session.ts'

type Parts = Pick<Core, 'store' | 'callers'>

/** A caller whose reply takes longer than what it was admitted by may last. */
export interface Watched {
  readonly caller: Caller
  /** What an agent presented. */
  readonly bearer: string | undefined
}

/**
 * Each caller as it is now; undefined for one whose token or session has ended, on whatever node. The same object if nothing
 * has changed. One query for all sessions.
 */
export async function currentCallers(
  core: Parts,
  watched: readonly Watched[],
): Promise<(Caller | undefined)[]> {
  const generation = await core.store.generation()
  const ids = watched.flatMap(({ caller }) => (caller.kind === 'operator' ? [caller.session.id] : []))
  const sessions = ids.length === 0 ? [] : await core.store.sessions.among([...new Set(ids)])
  const byId = new Map(sessions.map((session) => [session.id, session]))
  return Promise.all(
    watched.map(({ caller, bearer }) =>
      caller.kind === 'operator'
        ? currentOperator(core, caller, byId.get(caller.session.id), generation)
        : caller.kind === 'agent'
          ? currentAgent(core, caller, bearer, generation)
          : caller,
    ),
  )
}

function currentAgent(
  { callers }: Parts,
  caller: AgentCaller,
  bearer: string | undefined,
  generation: number,
): AgentCaller | undefined | Promise<AgentCaller | undefined> {
  if (callers.isCurrent(caller)) return caller
  return bearer === undefined ? undefined : callers.find(bearer, generation)
}

async function currentOperator(
  { store }: Parts,
  caller: OperatorCaller,
  session: OperatorCaller['session'] | undefined,
  generation: number,
): Promise<OperatorCaller | undefined> {
  if (session === undefined || sessionEnd(session) <= store.now()) return undefined
  if (session.version === caller.session.version) return caller
  const operator = await store.operators.findLiving(caller.operatorId)
  return operator && operatorCaller(operator, session, generation)
}
