import type { Kind } from '../../backends/kind.ts'
import { nameKey, requireName } from '../../domain/agent.ts'
import { requireLifetime } from '../../domain/duration.ts'
import { DEFAULT_MAX_TTL_MS, DEFAULT_TTL_MS } from '../../domain/limits.ts'
import { parseRate } from '../../domain/policy.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { requireScopes } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import type { BackendRow } from '../../store/schema/rows.ts'
import { audit } from '../audit/entry.ts'
import type { Caller, Origin } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { asProblem, withDeadline } from './call-upstream.ts'
import { definitionOf, sealConfig } from './definition.ts'

export interface BackendCommand {
  readonly type: string
  readonly name?: string | undefined
  readonly config?: Record<string, unknown> | undefined
  readonly default_ttl?: string | undefined
  readonly max_ttl?: string | undefined
  readonly allowed_scopes?: readonly string[] | null | undefined
  readonly description?: string | undefined
  readonly rate?: string | null | undefined
  readonly max_active?: number | null | undefined
}

export type BackendChange = Omit<BackendCommand, 'type' | 'name'> & { readonly type?: string | undefined }

type Parts = Pick<Core, 'store' | 'ids' | 'sealer' | 'backends' | 'settings' | 'log'>

/**
 * The configuration is checked against the kind's schema and, unless `check` is false, tried against the
 * upstream. Throws `invalid_request` with what to mend, `conflict` for a taken name, and the `backend_*` problems.
 */
export async function createBackend(
  core: Parts,
  caller: Caller,
  command: BackendCommand,
  check: boolean,
  origin: Origin,
): Promise<BackendRow> {
  const kind = core.backends.kinds.get(command.type)
  if (kind === undefined) throw invalid(`"type" is one of: ${[...core.backends.kinds.keys()].join(', ')}.`)
  const name = command.name ?? command.type
  requireName(name)
  const config = await readConfig(core, kind, command.config ?? {})
  if (check) await tryOut(core, kind, name, config)
  const now = core.store.now()
  const uid = core.ids.id('backend')
  const row: BackendRow = {
    uid,
    name,
    name_key: nameKey(name),
    type: kind.type,
    config: sealConfig(core, uid, config),
    ...readRules(kind, command, undefined),
    version: 1,
    created_at: now,
    changed_at: now,
    ended_at: null,
  }
  const entry = audit(core, caller, origin, {
    action: 'backend.created',
    backend: name,
    details: { type: kind.type },
  })
  const made: Step[] = [{ op: 'insert', table: 'backends', row }, { op: 'invalidate' }, entry]
  const outcome = await commit(core, [...whileUnchanged(caller), ...made])
  requireUnchanged(outcome)
  if (!outcome.done) throw new Problem('conflict', { message: 'A backend of this name exists already.' })
  return row
}

export interface ChangeOptions {
  /** Whether the upstream is tried. */
  readonly check: boolean
  /** The upstream is the same under another address, whatever is alive there. */
  readonly force: boolean
}

/**
 * What is left out stays as it is. `config` is whole; a secret left out of it or sent back as `[redacted]` stays, unless another upstream is meant: then
 * secrets are asked anew, and it is a `conflict` while credentials are alive at the one before, where alone they can
 * be ended. Throws `backend_not_found` and as `createBackend`.
 */
export async function changeBackend(
  core: Parts,
  caller: Caller,
  name: string,
  command: BackendChange,
  { check, force }: ChangeOptions,
  origin: Origin,
): Promise<BackendRow> {
  const row = await core.store.backends.findByName(nameKey(name))
  if (row === undefined) throw new Problem('backend_not_found')
  const kind = core.backends.kinds.get(row.type)
  if (kind === undefined || (command.type !== undefined && command.type !== row.type))
    throw invalid('"type" cannot be changed: make another backend.')
  const before = definitionOf(core, row)
  const set: Partial<BackendRow> = readRules(kind, command, row)
  let moved: string | undefined
  if (command.config !== undefined) {
    const kept = core.backends.keepSecrets(kind, before.config, command.config)
    const config = await readConfig(core, kind, kept)
    // Whoever may change a backend may not read its secrets: a kept one would be sent to wherever they point it.
    const exposed = core.backends.findExposed(kind, before.config, command.config, config)
    if (exposed !== undefined)
      throw invalid(
        `Give "${exposed.secret}" anew: "${exposed.by}" would have it sent elsewhere, or less protected.`,
      )
    moved = core.backends.findMove(kind, before.config, config)
    if (moved !== undefined && !force) await requireIdle(core, row.uid, moved)
    if (check) await tryOut(core, kind, name, config)
    set.config = sealConfig(core, row.uid, config)
  }
  const entry = audit(core, caller, origin, {
    action: 'backend.changed',
    backend: row.name,
    details: { fields: Object.keys(command), ...(moved === undefined ? {} : { moved, force }) },
  })
  const steps = core.store.backends.change(row.uid, row.version, set, core.store.now())
  if (moved !== undefined && !force) steps.push(core.store.backends.requireIdle(row.uid))
  const outcome = await commit(core, [...whileUnchanged(caller), ...steps, entry])
  requireUnchanged(outcome)
  if (!outcome.done) {
    // Trying the new upstream takes its time, in which a credential may have been issued.
    if (moved !== undefined && !force) await requireIdle(core, row.uid, moved)
    throw new Problem('conflict', { message: 'The backend was changed by somebody else; read it again.' })
  }
  return { ...row, ...set }
}

async function requireIdle(core: Parts, uid: string, moved: string): Promise<void> {
  if ((await core.store.credentials.countOpenOfBackend(uid, 1)) === 0) return
  throw new Problem('conflict', {
    message: `"${moved}" means another upstream, where the living credentials of this backend cannot be ended. Revoke them, make another backend, or add ?force=true where it is the same one under another address.`,
  })
}

async function readConfig(
  core: Parts,
  kind: Kind,
  given: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { config, faults } = core.backends.readConfig(kind, given)
  if (faults.length > 0) throw invalid(`The configuration is not valid. ${faults.slice(0, 10).join(' ')}`)
  try {
    return kind.complete === undefined ? config : await kind.complete(config)
  } catch (error) {
    throw shownToAdministrator(error)
  }
}

/** Opens the backend aside, asks its upstream, and closes it again. */
async function tryOut(core: Parts, kind: Kind, name: string, config: Record<string, unknown>): Promise<void> {
  try {
    await using instance = await core.backends.openTrial(kind, name, config)
    await withDeadline(core.settings.upstreamTimeoutMs, (signal) => instance.check(signal))
  } catch (error) {
    throw shownToAdministrator(error)
  }
}

/** An administrator is told the kind's own words; upstream text stays in the log. */
function shownToAdministrator(error: unknown): Problem {
  const problem = asProblem(error)
  if (!(error instanceof Error) || error.name !== 'BackendError') return problem
  const hint = 'Mend the configuration, or add ?check=false to store it untried.'
  const code = problem.code === 'backend_error' ? 'invalid_request' : problem.code
  return new Problem(code, {
    message: `The backend was not stored: ${error.message} ${hint}`,
    detail: problem.detail ?? '',
    cause: error,
  })
}

type Rules = Pick<
  BackendRow,
  'default_ttl_ms' | 'max_ttl_ms' | 'allowed_scopes' | 'description' | 'rate' | 'max_active'
>

function readRules(kind: Kind, command: BackendChange, old: BackendRow | undefined): Rules {
  const longest = kind.limits.maxTtlMs ?? Number.POSITIVE_INFINITY
  const max_ttl_ms =
    command.max_ttl === undefined
      ? (old?.max_ttl_ms ?? Math.min(DEFAULT_MAX_TTL_MS, longest))
      : requireLifetime(command.max_ttl, 'max_ttl')
  const wanted =
    command.default_ttl === undefined
      ? old?.default_ttl_ms
      : requireLifetime(command.default_ttl, 'default_ttl')
  const default_ttl_ms = wanted ?? Math.min(DEFAULT_TTL_MS, max_ttl_ms)
  if (max_ttl_ms > longest)
    throw invalid(`"max_ttl" is longer than this kind can keep. ${kind.limits.why ?? ''}`)
  if (default_ttl_ms > max_ttl_ms) throw invalid('"default_ttl" is longer than "max_ttl".')
  if (default_ttl_ms < (kind.limits.minTtlMs ?? 0))
    throw invalid(`"default_ttl" is shorter than this kind can issue. ${kind.limits.why ?? ''}`)
  if (command.allowed_scopes) requireScopes(command.allowed_scopes, 'allowed_scopes')
  if (command.rate && parseRate(command.rate) === undefined)
    throw invalid('"rate" is a number a unit of time, such as 10/hour.')
  return {
    default_ttl_ms,
    max_ttl_ms,
    allowed_scopes:
      command.allowed_scopes === undefined
        ? (old?.allowed_scopes ?? null)
        : command.allowed_scopes && JSON.stringify(command.allowed_scopes),
    description: command.description ?? old?.description ?? null,
    rate: command.rate === undefined ? (old?.rate ?? null) : command.rate,
    max_active: command.max_active === undefined ? (old?.max_active ?? null) : command.max_active,
  }
}
