import { BackendError, type Host } from '../kind.ts'
import type { Config } from './config.ts'
import { stateOf } from './faults.ts'
import { invoke, replyOf } from './invoke.ts'
import { allGroups, creatorNames, creatorSchema, type Group, prefixOf } from './plan.ts'
import { inspectServer, roleOfGroup, type Server } from './server.ts'
import { type Connections, transact, within } from './session.ts'
import { quoteIdentifier } from './statements.ts'

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
  /** What was found out is asked again: somebody has dropped a role or a function. */
  forget(): void
}

/** What a refresh could not grant or revoke, at most 20 of `count` named. */
export interface Refreshed {
  readonly granted: number
  readonly count: number
  readonly uncovered: readonly string[]
}

export function createUpstream(
  settings: Config,
  host: Host,
  connections: Pick<Upstream, 'issuing' | 'revoking'>,
): Upstream {
  const { issuing, revoking } = connections
  const prepared = new Map<string, Promise<unknown>>()
  let known: Promise<Server> | undefined

  /** Once, for all that need it at the same time, and again if it fails. */
  function once(key: string, make: () => Promise<unknown>): Promise<unknown> {
    const making = prepared.get(key) ?? make()
    prepared.set(key, making)
    making.catch(() => prepared.delete(key))
    return making
  }

  async function prepareOne(server: Server, group: Group): Promise<void> {
    const signal = AbortSignal.timeout(issuing.timeoutMs)
    await makeRoles(issuing, settings, server, [group], signal)
    warnOf(host, group.database, await refreshGroup(issuing, settings, server, group, signal))
  }

  const upstream: Upstream = {
    settings,
    issuing,
    revoking,
    server(through, signal) {
      known ??= within(through, settings.database, signal, 'COMMIT', (session) =>
        inspectServer(session, settings, host.uid),
      ).catch((error: unknown) => {
        known = undefined
        throw error
      })
      return known
    },
    async ready(server, groups) {
      if (server.creators) {
        const signal = AbortSignal.timeout(issuing.timeoutMs)
        await once('creators', () => makeRoles(issuing, settings, server, [], signal))
      }
      for (const group of groups) {
        await once(JSON.stringify([group.database, group.access]), () => prepareOne(server, group))
      }
      return groups.map((group) => roleOfGroup(server, settings, group))
    },
    forget() {
      known = undefined
      prepared.clear()
    },
  }
  return upstream
}

/** Makes the roles that are missing. The setup script has made those of the functions. */
async function makeRoles(
  connections: Connections,
  settings: Config,
  server: Server,
  groups: readonly Group[],
  signal: AbortSignal,
): Promise<void> {
  if (server.way === 'functions') return
  const statements = prepareStatements(settings, server, groups)
  try {
    await transact(connections, settings.database, signal, statements)
  } catch (error) {
    if (!EXISTS.has(stateOf(error) ?? '')) throw error
    // Another node was making them at the same time, and has made them now.
    await transact(connections, settings.database, signal, statements)
  }
}

/** `unique_violation`, `duplicate_object`, `duplicate_schema`. */
const EXISTS = new Set(['23505', '42710', '42P06'])

export function prepareStatements(
  settings: Config,
  server: Server,
  groups: readonly Group[],
): readonly string[] {
  return invoke('direct', 'prepare', {
    p_schema: creatorSchema(server),
    p_creators: server.creators ? creatorNames(server) : [],
    p_groups: groups.map((group) => roleOfGroup(server, settings, group)),
    p_comment: 'Credentials of Mayfly are members of this role',
  })
}

export function refreshStatements(settings: Config, server: Server, group: Group): readonly string[] {
  const p_group = roleOfGroup(server, settings, group)
  return server.way === 'functions'
    ? invoke('functions', 'refresh', { p_group })
    : invoke('direct', 'refresh', {
        p_group,
        p_access: group.access,
        p_schemas: settings.schemas,
        p_reassign: settings.reassign_owned_to,
      })
}

/** In the group's database. Fails only when the server cannot be asked. */
async function refreshGroup(
  connections: Connections,
  settings: Config,
  server: Server,
  group: Group,
  signal: AbortSignal,
): Promise<Refreshed> {
  const statements = refreshStatements(settings, server, group)
  return replyOf(await transact(connections, group.database, signal, statements))
}

function warnOf(host: Host, database: string, { count, uncovered }: Refreshed): void {
  if (count === 0) return
  host.log.warn({ database, count, uncovered }, 'credentials do not reach everything that they should')
}

/**
 * Grants the groups that exist what has been added since, and drops those that no configuration and no credential needs any
 * more. Throws `BackendError`.
 */
export async function keepUp(upstream: Upstream, host: Host, signal: AbortSignal): Promise<void> {
  const { settings, issuing } = upstream
  const server = await upstream.server(issuing, signal)
  const groups = allGroups(settings)
  const names = groups.map((group) => roleOfGroup(server, settings, group))
  const rows = await transact(issuing, settings.database, signal, [
    `SELECT rolname FROM pg_roles WHERE starts_with(rolname, 'mfg_')`,
  ])
  const existing = new Set(rows.map(({ rolname }) => String(rolname)))
  for (const [index, group] of groups.entries()) {
    if (!existing.has(names[index] ?? '')) continue
    warnOf(host, group.database, await refreshGroup(issuing, settings, server, group, signal))
  }
  await retire(upstream, [...names, ...creatorNames(server)], signal)
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
  const drop = async (database: string) =>
    replyOf<{ state: 'done' } | { state: 'owned'; databases: readonly string[] }>(
      await transact(issuing, database, signal, statements),
    )
  for (let reply = await drop(settings.database); reply.state === 'owned'; ) {
    for (const database of reply.databases) await drop(database)
    const next = await drop(settings.database)
    if (next.state === 'owned' && next.databases.join() === reply.databases.join()) {
      throw new BackendError(
        'denied',
        `A group role still holds grants in ${next.databases.map(quoteIdentifier).join(', ')}.`,
      )
    }
    reply = next
  }
}
