import type { LookupFunction } from 'node:net'
import type { Engine } from './engine/engine.ts'
import { openPostgres } from './postgres/engine.ts'
import type { Waiting } from './postgres/first-contact.ts'
import { openSqlite } from './sqlite/engine.ts'
import { createActivity } from './tables/activity.ts'
import { createAgents } from './tables/agents.ts'
import { createAudit } from './tables/audit/audit.ts'
import { createBackends } from './tables/backends.ts'
import { createCommandLogins } from './tables/command-logins.ts'
import { createCounts } from './tables/counts.ts'
import { createCredentials } from './tables/credentials.ts'
import { createEnrollments } from './tables/enrollments.ts'
import { createIdempotency } from './tables/idempotency.ts'
import { createLogins } from './tables/logins.ts'
import { createMeta } from './tables/meta.ts'
import { createOperators } from './tables/operators.ts'
import { createPlugins } from './tables/plugins.ts'
import { createReceivers } from './tables/receivers.ts'
import { createRunRequests } from './tables/run-requests.ts'
import { createRuns } from './tables/runs.ts'
import { createSealed } from './tables/sealed.ts'
import { createSessions } from './tables/sessions.ts'
import { createTokens } from './tables/tokens.ts'
import { createTrusts } from './tables/trusts.ts'

export interface StoreOptions {
  /** For SQLite. */
  directory: string
  /** If given, the store uses PostgreSQL. */
  databaseUrl?: string | undefined
  /** Knows the address of the host in `databaseUrl`. */
  lookup?: LookupFunction
  onTrouble?: (what: string, error: unknown) => void
  /** Waits for a PostgreSQL that is not there yet. Absent: that is an error. */
  waiting?: Waiting | undefined
}

export type Store = ReturnType<typeof createStore>

/** The tables of one engine. Every write goes through `commit`. */
export function createStore(engine: Engine) {
  return {
    dialect: engine.dialect,
    hasOtherNodes: engine.hasOtherNodes,
    endSlice: engine.endSlice,
    expireSlice: engine.expireSlice,
    stats: engine.stats,
    ...ends(engine),
    generation: engine.generation,
    changedAt: engine.changedAt,
    now: engine.now,
    trouble: engine.trouble,
    close: engine.close,
    meta: createMeta(engine),
    agents: createAgents(engine),
    backends: createBackends(engine),
    credentials: createCredentials(engine),
    enrollments: createEnrollments(engine),
    idempotency: createIdempotency(engine),
    tokens: createTokens(engine),
    logins: createLogins(engine),
    runs: createRuns(engine),
    runRequests: createRunRequests(engine),
    trusts: createTrusts(engine),
    plugins: createPlugins(engine),
    receivers: createReceivers(engine),
    operators: createOperators(engine),
    sessions: createSessions(engine),
    commandLogins: createCommandLogins(engine),
    audit: createAudit(engine),
    activity: createActivity(engine),
    counts: createCounts(engine),
    sealed: createSealed(engine),
  }
}

/** Changes that are urgent end something: those who wait for an end look again. */
function ends({ commit }: Pick<Engine, 'commit'>): Pick<Engine, 'commit'> & {
  /** Returns what stops the telling. Of this process alone. */
  onEnd(listener: () => void): () => void
} {
  const listeners = new Set<() => void>()
  const commitEnd: Engine['commit'] = async (change, options) => {
    const outcome = await commit(change, options)
    for (const listener of listeners) listener()
    return outcome
  }
  return {
    commit: (change, options) =>
      options?.urgent === true && listeners.size > 0 ? commitEnd(change, options) : commit(change, options),
    onEnd(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export async function openStore(options: StoreOptions): Promise<Store> {
  const { directory, databaseUrl: url, ...rest } = options
  const engine =
    url === undefined ? await openSqlite({ directory, ...rest }) : await openPostgres({ url, ...rest })
  return createStore(engine)
}
