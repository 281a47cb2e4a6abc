import { createAgents } from './agents.ts'
import { createAudit } from './audit.ts'
import { createBackends } from './backends.ts'
import { createCredentials } from './credentials.ts'
import type { Engine } from './engine.ts'
import { createEnrollments } from './enrollments.ts'
import { createMeta } from './meta.ts'
import { openPostgres } from './postgres.ts'
import { createSealed } from './sealed.ts'
import { openSqlite } from './sqlite.ts'
import { createTokens } from './tokens.ts'

export interface StoreOptions {
  /** For SQLite. */
  directory: string
  /** Given, PostgreSQL is used instead. */
  databaseUrl?: string | undefined
  onTrouble?: (what: string, error: unknown) => void
}

export type Store = ReturnType<typeof createStore>

/** The families of one engine. All writing goes through `commit`. */
export function createStore(engine: Engine) {
  return {
    dialect: engine.dialect,
    stats: engine.stats,
    commit: engine.commit,
    generation: engine.generation,
    now: engine.now,
    trouble: engine.trouble,
    close: engine.close,
    meta: createMeta(engine),
    agents: createAgents(engine),
    backends: createBackends(engine),
    credentials: createCredentials(engine),
    enrollments: createEnrollments(engine),
    tokens: createTokens(engine),
    audit: createAudit(engine),
    sealed: createSealed(engine),
  }
}

export async function openStore(options: StoreOptions): Promise<Store> {
  const onTrouble = options.onTrouble === undefined ? {} : { onTrouble: options.onTrouble }
  const engine =
    options.databaseUrl === undefined
      ? await openSqlite({ directory: options.directory, ...onTrouble })
      : await openPostgres({ url: options.databaseUrl, ...onTrouble })
  return createStore(engine)
}
