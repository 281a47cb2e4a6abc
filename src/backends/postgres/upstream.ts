import { denied } from '../../domain/backend-error.ts'
import type { Host } from '../kind.ts'
import type { Connections } from './client.ts'
import type { Config } from './config.ts'
import { stateOf } from './faults.ts'
import { invoke, replyOf } from './invoke.ts'
import { allGroups, creatorNames, creatorSchema, type Group, prefixOf } from './plan.ts'
import { explainAbsent, inspectServer, roleOfGroup, type Server } from './server.ts'
import { quoteList } from './statements.ts'

/** The server with the group roles of one backend. */
export interface Upstream {
  readonly settings: Config
  readonly issuing: Connections
  /** Separate, so that issues that are held up hold back no revocation. */
  readonly revoking: Connections
  /** Asked once. Throws `BackendError`. */
  server(connections: Connections, signal: AbortSignal): Promise<Server>
  /** The roles of these groups, which exist and hold their grants from then on. Throws `BackendError`. */
  ready(server: Server, groups: readonly Group[]): Promise<readonly string[]>
  /** Grants what has been added since, and drops the groups that nothing needs any more. Throws `BackendError`. */
  keepUp(signal: AbortSignal): Promise<void>
  /** What was found out is asked again: somebody has dropped a role or a function. */
  forget(): void
}

/** The reply of a refresh (see procedures.ts). */
export interface Refreshed {
  readonly count: number
  readonly uncovered: readonly string[]
  readonly absent: string | null
  readonly closed: boolean
  readonly remedy: string | null
}

/** `unique_violation`, `duplicate_object`, `duplicate_schema`. */
const EXISTS = new Set(['23505', '42710', '42P06'])

export function createUpstream(
  settings: Config,
  host: Host,
  { issuing, revoking }: Pick<Upstream, 'issuing' | 'revoking'>,
): Upstream {
  const prepared = new Map<string, Promise<unknown>>()
  let known: Promise<Server> | undefined

  /** What it cannot grant goes to the log. */
  async function refresh(server: Server, database: string, signal: AbortSignal): Promise<void> {
    const statements = refreshStatements(settings, server, database)
    const rows = await issuing.transact(database, signal, statements).catch((error: unknown) => {
      throw explainAbsent(server, database, error)
    })
    const { count, uncovered } = replyOf<Refreshed>(rows)
    if (count === 0) return
    host.log.warn({ database, count, uncovered }, 'credentials do not reach everything that they should')
  }

  async function prepare(server: Server, database: string): Promise<void> {
    // Others wait for it, too: no caller's own signal.
    const signal = AbortSignal.timeout(host.timeoutMs)
    const statements = prepareStatements(settings, server, database)
    const makeRoles = () => issuing.transact(settings.database, signal, statements)
    await makeRoles().catch((error: unknown) => {
      if (!EXISTS.has(stateOf(error) ?? '')) throw error
      // Another node was making them at the same time, and has made them now.
      return makeRoles()
    })
    await refresh(server, database, signal)
  }

  const upstream: Upstream = {
    settings,
    issuing,
    revoking,
    server(through, signal) {
      known ??= inspectServer(through, signal, settings, host.uid).catch((error: unknown) => {
        known = undefined
        throw error
      })
      return known
    },
    async ready(server, groups) {
      const databases = new Set(groups.map(({ database }) => database))
      if (server.creators) databases.add(settings.database)
      for (const database of databases) {
        let preparing = prepared.get(database)
        if (preparing === undefined) {
          preparing = prepare(server, database)
          prepared.set(database, preparing)
          preparing.catch(() => prepared.delete(database))
        }
        await preparing
      }
      return groups.map((group) => roleOfGroup(server, settings, group))
    },
    async keepUp(signal) {
      const server = await upstream.server(issuing, signal)
      const groups = allGroups(settings)
      const names = groups.map((group) => roleOfGroup(server, settings, group))
      const rows = await issuing.transact(settings.database, signal, [
        `SELECT rolname FROM pg_roles WHERE rolname = ANY (${quoteList(names)})`,
      ])
      // No connection to databases that no credential has needed yet.
      const existing = groups.filter((_, index) => rows.some(({ rolname }) => rolname === names[index]))
      for (const database of new Set(existing.map((group) => group.database)))
        await refresh(server, database, signal)
      await retire(upstream, [...names, ...creatorNames(server)], signal)
    },
    forget() {
      known = undefined
      prepared.clear()
    },
  }
  return upstream
}

function rolesIn(settings: Config, server: Server, database: string): readonly string[] {
  const groups = allGroups(settings).filter((group) => group.database === database)
  return groups.map((group) => roleOfGroup(server, settings, group))
}

/** Makes the roles that are missing. The setup script has made those of the functions. */
export function prepareStatements(settings: Config, server: Server, database: string): readonly string[] {
  if (server.way === 'functions') return []
  return invoke('direct', 'prepare', {
    p_schema: creatorSchema(server),
    p_creators: server.creators ? creatorNames(server) : [],
    p_groups: rolesIn(settings, server, database),
    p_comment: 'Credentials of Mayfly are members of this role',
  })
}

/** To be run in that database. */
export function refreshStatements(settings: Config, server: Server, database: string): readonly string[] {
  return invoke(server.way, 'refresh', {
    p_groups: rolesIn(settings, server, database),
    p_schemas: settings.schemas,
    p_reassign: settings.reassign_owned_to,
  })
}

/** Drops the backend's own roles but `kept` and those that a credential still needs. */
export async function retire(
  { settings, issuing, server: ask }: Upstream,
  kept: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const server = await ask(issuing, signal)
  if (server.way === 'functions') return
  const statements = invoke('direct', 'retire', {
    p_prefix: prefixOf(server.uid),
    p_schema: creatorSchema(server),
    p_keep: kept,
  })
  const dropIn = async (database: string) =>
    replyOf<readonly string[]>(await issuing.transact(database, signal, statements))
  const elsewhere = await dropIn(settings.database)
  for (const database of elsewhere) await dropIn(database)
  const left = elsewhere.length === 0 ? [] : await dropIn(settings.database)
  if (left.length > 0) {
    throw denied('A group role still holds grants in another database.', {
      detail: left.join(', '),
    })
  }
}
