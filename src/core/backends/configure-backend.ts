import {
  findExposed,
  findMove,
  isAnother,
  keepSecrets,
  readConfig,
  secretFields,
} from '../../backends/config-fields.ts'
import type { Kind } from '../../backends/kind.ts'
import { missingKind } from '../../backends/kind-set.ts'
import { DeadlineError, withDeadline } from '../../domain/abort.ts'
import { requireName } from '../../domain/agent.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { requireLifetime } from '../../domain/duration.ts'
import { DEFAULT_MAX_TTL_MS, DEFAULT_TTL_MS } from '../../domain/limits.ts'
import { parseRate } from '../../domain/policy.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { coversAny, requireScopes } from '../../domain/scope.ts'
import type { SentUseRules } from '../../domain/sent-use-rules.ts'
import { hideValues } from '../../log/filter.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { isFullAdministrator, requireTrial, requireUnguarded, requireWholeBackend } from './backend-power.ts'
import { asProblem, describe } from './call-upstream.ts'
import { type ConfiguredBackend, definitionOf, openStoredConfig, sealConfig } from './definition.ts'
import { reasonOfCheck } from './health.ts'
import { readUses, useWarnings } from './read-uses.ts'
import { settleByChange } from './rotation-record.ts'

export interface BackendCommand extends BackendRules {
  readonly type: string
  readonly name?: string | undefined
  readonly config?: Fields | undefined
}

export type BackendChange = Omit<BackendCommand, 'type' | 'name'> & { readonly type?: string | undefined }

export interface ChangeOptions {
  /** Try the upstream before anything is stored. */
  readonly check: boolean
  /** The upstream is the same one under another address, so living credentials do not stand in the way. */
  readonly force: boolean
}

/** What was stored, and what the trial warned of. */
export type StoredNow = ConfiguredBackend & { readonly warnings: readonly string[] }

type Fields = Record<string, unknown>

/**
 * Checks the configuration against the kind's schema and, unless `check` is false, tries it at the upstream. Returns
 * what it stored. Throws `invalid_request` with what to fix, `conflict` for a taken name, the `backend_*` problems, and
 * `insufficient_scope` for a narrowed token and as ADR 0022 says.
 */
export async function createBackend(
  core: Core,
  actor: Actor,
  command: BackendCommand,
  check: boolean,
): Promise<StoredNow> {
  requireWhole(core, actor)
  // Another node may have added its plugin.
  await core.backends.at(actor.caller.generation)
  const kind = core.backends.kinds.get(command.type)
  if (kind === undefined) throw invalid(`"type" is one of: ${[...core.backends.kinds.keys()].join(', ')}.`)
  const name = command.name ?? command.type
  requireName(name)
  // Agents and relying parties may still trust a deleted backend by its name.
  if (await core.store.backends.isNameUsed(name)) requireWholeBackend(core, actor, name)
  requireTrial(core, actor, check)
  const config = await requireConfig(kind, command.config ?? {})
  requireUnguarded(core, actor, kind, config)
  const uses = readUses(core, actor, { sent: command.uses, old: null, name })
  const uid = core.ids.id('backend')
  const warnings = check ? await tryOut(core, actor, kind, { uid, name }, config) : []
  const now = core.store.now()
  const stored: StoredBackend = {
    uid,
    name,
    type: kind.type,
    sealedConfig: sealConfig(core, uid, config),
    ...readRules(kind, command, undefined),
    version: 1,
    createdAt: now,
    changedAt: now,
    endedAt: null,
    ending: null,
    sealedRotation: null,
    rootSetAt: null,
    uses,
  }
  const entry = audit(core, actor, {
    action: 'backend.created',
    backend: name,
    details: { type: kind.type },
  })
  const change = [...whileUnchanged(actor), ...core.store.backends.insert(stored), entry]
  const outcome = await commit(core, actor, change)
  requireUnchanged(outcome)
  if (!outcome.done) throw new Problem('conflict', { message: 'A backend of this name exists already.' })
  if (check) core.health.succeeded({ ...stored, config })
  return { ...definitionOf(core, stored), kind, warnings: [...warnings, ...useWarnings(kind, config, uses)] }
}

/**
 * Fields that are left out keep their values, but `config` is whole: of it, only secrets that are left out or sent as
 * `[redacted]` are kept. A change to another upstream requires its secrets again, and is a `conflict` while credentials
 * live at the old one, the only place where they can be revoked. Returns what it stored. Throws `backend_not_found`
 * and as `createBackend`.
 */
export async function changeBackend(
  core: Core,
  actor: Actor,
  name: string,
  command: BackendChange,
  options: ChangeOptions,
): Promise<StoredNow> {
  requireWhole(core, actor)
  const before = await core.store.backends.findByName(name)
  if (before === undefined) throw new Problem('backend_not_found')
  if (before.ending !== null) throw new Problem('conflict', { message: 'This backend is being deleted.' })
  if (command.type !== undefined && command.type !== before.type)
    throw invalid('"type" cannot be changed; create another backend.')
  await core.backends.at(actor.caller.generation)
  const kind = core.backends.kinds.get(before.type)
  if (kind === undefined) throw new Problem('conflict', { message: missingKind(before.type) })
  const rules = readRules(kind, command, before)
  if (isWidened(before.allowedScopes, rules.allowedScopes)) requireWholeBackend(core, actor, before.name)
  const uses = readUses(core, actor, { sent: command.uses, old: before.uses, name: before.name })
  const by = { actor, check: options.check }
  const { config, moved } = await changeConfig(core, kind, before, command.config, by)
  const old = openStoredConfig(core, before)
  const settled = settleByChange(core, before, old, config)
  const mustBeIdle = moved !== undefined && !options.force
  if (mustBeIdle) await requireIdle(core, before.uid, moved)
  const isTried = config !== undefined && options.check
  const warnings = isTried ? await tryOut(core, actor, kind, before, config) : []
  const now = core.store.now()
  const after: StoredBackend = {
    ...before,
    ...rules,
    uses,
    sealedConfig: config === undefined ? before.sealedConfig : sealConfig(core, before.uid, config),
    version: before.version + 1,
    changedAt: now,
    ...(hasOtherSecret(kind, old, config) ? { rootSetAt: now } : {}),
  }
  const entry = audit(core, actor, {
    action: 'backend.changed',
    backend: before.name,
    details: {
      fields: Object.keys(command),
      ...(moved === undefined ? {} : { moved, force: options.force }),
    },
  })
  const outcome = await commit(core, actor, [
    ...whileUnchanged(actor),
    ...settled,
    ...core.store.backends.change(before, after),
    // What could not be ended before may be possible to end now.
    ...(config === undefined ? [] : [core.store.credentials.wake(before.uid, after.changedAt)]),
    ...(mustBeIdle ? [core.store.backends.requireIdle(before.uid)] : []),
    entry,
  ])
  requireUnchanged(outcome)
  if (outcome.done) {
    if (isTried) core.health.succeeded({ ...after, config })
    const aboutUses = command.uses === undefined ? [] : useWarnings(kind, config ?? old, uses)
    return { ...definitionOf(core, after), kind, warnings: [...warnings, ...aboutUses] }
  }
  // A credential may have been issued while the new upstream was tried.
  if (mustBeIdle) await requireIdle(core, before.uid, moved)
  throw new Problem('conflict', { message: 'The backend was changed in the meantime; read it again.' })
}

function hasOtherSecret(kind: Kind, old: Fields | undefined, config: Fields | undefined): boolean {
  return config !== undefined && secretFields(kind.config).some((name) => config[name] !== old?.[name])
}

interface ConfigChange {
  /** Undefined: it stays as it is. */
  readonly config?: Fields
  /** The field that selects another upstream. */
  readonly moved?: string | undefined
}

/** Who changes it, and whether it is tried. */
interface ChangeBy {
  readonly actor: Actor
  readonly check: boolean
}

async function changeConfig(
  core: Core,
  kind: Kind,
  stored: StoredBackend,
  given: Fields | undefined,
  { actor, check }: ChangeBy,
): Promise<ConfigChange> {
  if (given === undefined) return {}
  // If it cannot be opened, nothing is kept: every secret must be entered.
  const before = definitionOf(core, stored).config ?? {}
  const config = await requireConfig(kind, keepSecrets(kind.config, before, given))
  if (isAnother(kind.config, before, given, config)) {
    requireWholeBackend(core, actor, stored.name)
    requireTrial(core, actor, check)
    requireUnguarded(core, actor, kind, config)
  }
  // An administrator may change a backend but not read its secrets: a kept one could be sent to a server of theirs.
  const exposed = findExposed(kind.config, before, given, config)
  if (exposed !== undefined)
    throw invalid(`Changing "${exposed.by}" requires re-entering "${exposed.secret}".`)
  return { config, moved: findMove(kind.config, before, config) }
}

/** Null permits every scope. Narrowing them is a limit, which every administrator of backends may set. */
function isWidened(before: readonly string[] | null, after: readonly string[] | null): boolean {
  if (before === null) return false
  return after === null || !after.every((scope) => coversAny(before, scope))
}

async function requireIdle(core: Core, uid: string, moved: string): Promise<void> {
  if ((await core.store.credentials.countOpenOfBackend(uid, 1)) === 0) return
  throw new Problem('conflict', {
    message: `Changing "${moved}" selects another upstream, where the living credentials of this backend cannot be revoked. Revoke them, create another backend, or add ?force=true if it is the same upstream under another address.`,
  })
}

/** The whole configuration as the kind wants it. Throws `invalid_request`. */
async function requireConfig(kind: Kind, given: Fields): Promise<Fields> {
  const { config, faults } = readConfig(kind.config, given)
  if (faults.length > 0) throw invalid(`The configuration is not valid. ${faults.slice(0, 10).join(' ')}`)
  try {
    return kind.complete === undefined ? config : await kind.complete(config)
  } catch (error) {
    throw shownToAdministrator(error)
  }
}

/** Opens the configuration, asks its upstream, and closes it again. Returns the kind's warnings. */
async function tryOut(
  core: Core,
  actor: Actor,
  kind: Kind,
  of: Pick<StoredBackend, 'uid' | 'name'>,
  config: Fields,
): Promise<readonly string[]> {
  try {
    await using instance = await core.backends.openTrial(kind, of, config)
    return await withDeadline(core.settings.upstreamTimeoutMs, (signal) => instance.check(signal))
  } catch (error) {
    if (isFullAdministrator(actor)) throw shownToAdministrator(error)
    core.log.warn({ backend: of.name, detail: describe(error) }, 'the trial of a backend failed')
    throw new Problem('invalid_request', { message: UNTOLD, cause: error })
  }
}

/** Every failure looks like this to others: differences would show which addresses and ports answer. */
const UNTOLD =
  'The backend was not stored: its upstream could not be used with this configuration. The log of the server says why; the local host and holders of admin:* are told.'

/** Longest text of an upstream that is shown. */
const MAX_WORDS = 500

/** An administrator sees the kind's own words; upstream text stays in the log, except where it names the missing permission. */
function shownToAdministrator(error: unknown): Problem {
  const problem = asProblem(error)
  const reason = reasonOfCheck(error)
  if (error instanceof DeadlineError)
    return new Problem(problem.code, { detail: problem.detail, cause: error, reason })
  if (!(error instanceof BackendError)) return problem
  // A cloud alone knows the name of the permission that is missing.
  const words =
    reason === 'permission_missing' && error.detail
      ? ` (${hideValues(error.detail).slice(0, MAX_WORDS)})`
      : ''
  const hint = 'Fix the configuration, or add ?check=false to store it untried.'
  const code = problem.code === 'backend_error' ? 'invalid_request' : problem.code
  return new Problem(code, {
    message: `The backend was not stored: ${error.message}${words} ${hint}`,
    reason,
    detail: problem.detail ?? '',
    cause: error,
  })
}

/** The settings that every kind has. An undefined one keeps its value; null removes it. */
interface BackendRules {
  readonly default_ttl?: string | undefined
  readonly max_ttl?: string | undefined
  readonly allowed_scopes?: readonly string[] | null | undefined
  readonly description?: string | undefined
  readonly rate?: string | null | undefined
  readonly max_active?: number | null | undefined
  readonly rotate_root_after?: string | null | undefined
  readonly uses?: SentUseRules | null | undefined
}

type StoredRules = Pick<
  StoredBackend,
  'defaultTtlMs' | 'maxTtlMs' | 'allowedScopes' | 'description' | 'rate' | 'maxActive' | 'rotateRootAfterMs'
>

/** The rules as they are stored. Throws `invalid_request`. */
function readRules(kind: Kind, rules: BackendRules, old: StoredRules | undefined): StoredRules {
  if (rules.allowed_scopes) requireScopes(rules.allowed_scopes, 'allowed_scopes')
  if (rules.rate && parseRate(rules.rate) === undefined)
    throw invalid('"rate" is a number per unit of time, such as 10/hour.')
  return {
    ...readLifetimes(kind, rules, old),
    allowedScopes: given(rules.allowed_scopes, old?.allowedScopes),
    description: given(rules.description, old?.description),
    rate: given(rules.rate, old?.rate),
    maxActive: given(rules.max_active, old?.maxActive),
    rotateRootAfterMs: given(readRootAge(kind, rules), old?.rotateRootAfterMs),
  }
}

function readRootAge(kind: Kind, { rotate_root_after: text }: BackendRules): number | null | undefined {
  if (typeof text !== 'string') return text
  if (secretFields(kind.config).length === 0)
    throw invalid('"rotate_root_after" is for kinds that log in with a secret; this one has none.')
  return requireLifetime(text, 'rotate_root_after')
}

function given<T>(value: T | null | undefined, old: T | null | undefined): T | null {
  return value === undefined ? (old ?? null) : value
}

function readLifetimes(
  { limits }: Kind,
  rules: BackendRules,
  old: StoredRules | undefined,
): Pick<StoredRules, 'defaultTtlMs' | 'maxTtlMs'> {
  const longest = limits.maxTtlMs ?? Number.POSITIVE_INFINITY
  const maxTtlMs =
    rules.max_ttl === undefined
      ? (old?.maxTtlMs ?? Math.min(DEFAULT_MAX_TTL_MS, longest))
      : requireLifetime(rules.max_ttl, 'max_ttl')
  const defaultTtlMs =
    rules.default_ttl === undefined
      ? (old?.defaultTtlMs ?? Math.min(DEFAULT_TTL_MS, maxTtlMs))
      : requireLifetime(rules.default_ttl, 'default_ttl')
  if (maxTtlMs > longest) throw invalid(`"max_ttl" is longer than this kind can keep. ${limits.why ?? ''}`)
  if (defaultTtlMs > maxTtlMs) throw invalid('"default_ttl" is longer than "max_ttl".')
  if (defaultTtlMs < (limits.minTtlMs ?? 0))
    throw invalid(`"default_ttl" is shorter than this kind can issue. ${limits.why ?? ''}`)
  return { maxTtlMs, defaultTtlMs }
}
