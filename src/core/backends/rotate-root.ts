import { isRedirected, readConfig, secretFields } from '../../backends/config-fields.ts'
import type { Backend, Kind, Rotation } from '../../backends/kind.ts'
import { missingKind } from '../../backends/kind-set.ts'
import { withDeadline } from '../../domain/abort.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { longestRotationMs } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { type Actor, type Caller, SYSTEM } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { requireWholeBackend } from './backend-power.ts'
import { asProblem, describe, isRefusal } from './call-upstream.ts'
import { openStoredConfig, sealConfig } from './definition.ts'
import {
  aloneKey,
  isClaimed,
  openRotation,
  type RotationRecord,
  rotationBy,
  sealRotation,
} from './rotation-record.ts'

type Fields = Readonly<Record<string, unknown>>

/** The result of a rotation. Times in epoch ms. */
export interface RootRotation {
  readonly name: string
  /** The fields that have new values. */
  readonly fields: readonly string[]
  readonly rotatedAt: number
  /** It completed one that was interrupted. */
  readonly isResumed: boolean
  /** The old secrets are no longer valid. False: the server goes on trying to end them. */
  readonly isFinished: boolean
}

/**
 * Replaces the secrets that Mayfly logs in with (ADR 0033), or completes a rotation that was interrupted. At every moment the
 * store holds secrets that work. It requires the whole scope of the backend. Throws `insufficient_scope`, `backend_not_found`, `conflict` while another rotation is under way, `invalid_request`
 * for a backend that has no such secret, and the `backend_*` problems.
 */
export async function rotateRoot(core: Core, actor: Actor, name: string): Promise<RootRotation> {
  requireWhole(core, actor)
  const stored = await core.store.backends.findByName(name)
  if (stored === undefined) throw new Problem('backend_not_found')
  requireWholeBackend(core, actor, stored.name)
  if (stored.ending !== null) throw new Problem('conflict', { message: 'This backend is being deleted.' })
  const rotated = await core.serialize.ifIdle(aloneKey(stored.uid), async () => {
    const run = startRun(core, actor, stored)
    const pending = await takePending(run)
    const resumed = pending === undefined ? undefined : await resume(run, pending)
    return resumed ?? replaceSecrets(run)
  })
  if (rotated === undefined) throw underWay()
  return rotated
}

/** For the job: completes what was interrupted, also by the end of this process or of another node. */
export async function resumeRotations(core: Core): Promise<void> {
  const { byUid } = await core.backends.at(await core.store.generation())
  const pending = [...byUid.values()].filter(
    ({ rotation, endedAt }) => rotation !== undefined && endedAt === null,
  )
  await Promise.all(
    pending.map(async (backend) => {
      const stored = await core.store.backends.find(backend.uid)
      if (stored === undefined) return
      await core.serialize.ifIdle(aloneKey(stored.uid), async () => {
        try {
          const run = startRun(core, SYSTEM, stored)
          const record = await takePending(run)
          if (record !== undefined) await resume(run, record)
        } catch (error) {
          if (error instanceof Problem && error.code === 'conflict') return
          core.log.warn(
            { backend: backend.name, detail: describe(error) },
            'an interrupted rotation of the root secret could not be completed; it will be tried again',
          )
        }
      })
    }),
  )
}

/** The record of an interrupted run, claimed for this one. Throws `conflict` if a node may still be working on it. */
async function takePending({ core, uid, until }: Run): Promise<RotationRecord | undefined> {
  const stored = await requireStored(core, uid)
  const record = openRotation(core, stored)
  if (record === undefined) return undefined
  if (isClaimed(core, record)) throw underWay()
  const claimed = { ...record, claimedUntil: claimOf(core, until) }
  const change = core.store.backends.setRotation(stored, sealRotation(core, uid, claimed))
  if (!(await commit(core, SYSTEM, change, { urgent: true })).done) throw underWay()
  return claimed
}

/** Undefined when the old secrets of an earlier rotation were ended, so that nothing is pending any more. */
async function resume(run: Run, record: RotationRecord): Promise<RootRotation | undefined> {
  if (record.stage === 'proposed') return putInForce(run, record, true)
  await finish(run, record).catch((error: unknown) => {
    throw notRotated(error)
  })
  return undefined
}

async function replaceSecrets(run: Run): Promise<RootRotation> {
  const { core, uid, actor, until } = run
  const stored = await requireStored(core, uid)
  const config = requireConfig(core, stored)
  let values: RotationRecord['values']
  try {
    values = await tryOn(run, stored, config, async (instance, call) => {
      const rotation = requireRotation(instance)
      await call((signal) => instance.check(signal))
      return call((signal) => rotation.propose(signal))
    })
    requireSecrets(run.kind, config, values)
  } catch (error) {
    throw notRotated(error)
  }
  const now = core.store.now()
  const record: RotationRecord = {
    id: core.ids.body(),
    stage: 'proposed',
    values,
    since: now,
    claimedUntil: claimOf(core, until),
    by: rotationBy(actor),
  }
  const outcome = await commit(core, actor, [
    ...(actor.caller === undefined ? [] : whileUnchanged({ ...actor, caller: actor.caller })),
    ...core.store.backends.setRotation(stored, sealRotation(core, uid, record)),
  ])
  requireUnchanged(outcome)
  if (!outcome.done) throw underWay()
  return putInForce(run, record, false)
}

/** From the stored proposal to its end. If it throws, a proposal that may be the valid one is still stored. */
async function putInForce(run: Run, record: RotationRecord, isResumed: boolean): Promise<RootRotation> {
  const { core, uid } = run
  const stored = await requireStored(core, uid)
  const config = requireConfig(core, stored)
  const next = { ...config, ...record.values }
  let hasFinish: boolean
  try {
    await adopt(run, stored, { config, next, values: record.values })
    hasFinish = await tryOn(run, stored, next, async (instance, call) => {
      await call((signal) => instance.check(signal))
      return instance.rotation?.finish !== undefined
    })
  } catch (error) {
    if (isRefusal(error) && (await works(run, stored, config))) {
      await forget(run, record)
      throw notRotated(error)
    }
    await release(run, record)
    throw notRotated(error, UNSURE)
  }
  const rotatedAt = core.store.now()
  const old = await makeConfiguration(run, record, { hasFinish, isResumed })
  const isFinished = old === undefined || (await finishNow(run, old))
  return { name: stored.name, fields: Object.keys(record.values), rotatedAt, isResumed, isFinished }
}

/**
 * In one commit: the new secrets become the configuration, and the old ones are kept if they are still to be ended. Returns that
 * record. Tries again when the backend was changed meanwhile, which leaves its secrets alone while the record is there.
 */
async function makeConfiguration(
  { core, uid }: Run,
  record: RotationRecord,
  { hasFinish, isResumed }: { readonly hasFinish: boolean; readonly isResumed: boolean },
): Promise<RotationRecord | undefined> {
  const { setRotation, change } = core.store.backends
  for (;;) {
    const before = await requireStored(core, uid)
    if (openRotation(core, before)?.id !== record.id) throw underWay()
    const config = requireConfig(core, before)
    const fields = Object.keys(record.values)
    const oldOnes = fields.flatMap((field) =>
      typeof config[field] === 'string' ? [[field, config[field]]] : [],
    )
    const left: RotationRecord | undefined = hasFinish
      ? { ...record, stage: 'finishing', values: Object.fromEntries(oldOnes) }
      : undefined
    const now = core.store.now()
    const after: StoredBackend = {
      ...before,
      sealedConfig: sealConfig(core, uid, { ...config, ...record.values }),
      version: before.version + 1,
      changedAt: now,
      rootSetAt: now,
    }
    const outcome = await commit(
      core,
      SYSTEM,
      [
        ...setRotation(before, left === undefined ? null : sealRotation(core, uid, left)),
        ...change(before, after),
        core.store.audit.record({
          ...record.by,
          id: core.ids.body(now),
          at: now,
          action: 'backend.root_rotated',
          outcome: 'ok',
          backend: before.name,
          credentialId: null,
          runId: null,
          scopes: null,
          ttlMs: null,
          metadata: null,
          details: { fields, ...(isResumed ? { resumed: true } : {}) },
        }),
      ],
      { urgent: true },
    )
    if (outcome.done) return left
  }
}

/** The rotation is done: a failure to end the old secrets is left to the job. */
async function finishNow(run: Run, record: RotationRecord): Promise<boolean> {
  try {
    await finish(run, record)
    return true
  } catch (error) {
    run.core.log.warn(
      { backend: run.uid, detail: describe(error) },
      'the old root secret could not be ended; it will be tried again',
    )
    return false
  }
}

async function finish(run: Run, record: RotationRecord): Promise<void> {
  const { core, uid } = run
  const stored = await requireStored(core, uid)
  const config = requireConfig(core, stored)
  // Meanwhile an administrator has entered an old one again, which is valid until it is ended.
  if (Object.entries(record.values).some(([field, value]) => config[field] === value))
    return forget(run, record)
  try {
    await tryOn(run, stored, config, async (instance, call) => {
      await call(async (signal) => instance.rotation?.finish?.(record.values, signal))
    })
  } catch (error) {
    await release(run, record)
    throw error
  }
  await forget(run, record)
}

/**
 * A kind may propose secrets and their names (the id of an access key). The configuration must stay valid and select the
 * same upstream.
 */
function requireSecrets(kind: Kind, config: Fields, values: RotationRecord['values']): void {
  const secrets = secretFields(kind.config)
  const next = { ...config, ...values }
  const isChanged = secrets.some((name) => next[name] !== config[name])
  const { faults } = readConfig(kind.config, next)
  if (!isChanged || faults.length > 0 || isRedirected(kind.config, config, next))
    throw new Problem('backend_error', { detail: 'the kind proposed a configuration that cannot be used' })
}

const UNSURE =
  'The rotation is not complete. Mayfly keeps both secrets, uses the one that works, and tries again.'

/** An administrator sees the kind's own words; upstream text stays in the log. */
function notRotated(error: unknown, what = 'The root secret was not rotated.'): Problem {
  if (error instanceof Problem) return error
  const { code, message, detail = '', retryAfterSeconds } = asProblem(error)
  return new Problem(code, {
    message: `${what} ${error instanceof BackendError ? error.message : message}`,
    cause: error,
    detail,
    retryAfterSeconds,
  })
}

/** One rotation at work. Its steps share a deadline, so that the request takes no longer than others (ADR 0024). */
interface Run {
  readonly core: Core
  readonly kind: Kind
  readonly uid: string
  readonly actor: Actor<Caller | undefined>
  readonly until: number
}

function startRun(core: Core, actor: Actor<Caller | undefined>, { uid, type }: StoredBackend): Run {
  const kind = core.backends.kinds.get(type)
  if (kind === undefined) throw new Problem('conflict', { message: missingKind(type) })
  const until = core.store.now() + longestRotationMs(core.settings.upstreamTimeoutMs)
  return { core, kind, uid, actor, until }
}

type Call = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>

/** An instance of its own, opened with these secrets; each call to it has a deadline. */
async function tryOn<T>(
  { core, kind, until }: Run,
  stored: StoredBackend,
  config: Fields,
  work: (instance: Backend, call: Call) => Promise<T>,
): Promise<T> {
  await using instance = await core.backends.openTrial(kind, stored, { ...config })
  return await work(instance, (one) => {
    const left = Math.max(1, until - core.store.now())
    return withDeadline(Math.min(core.settings.upstreamTimeoutMs, left), one)
  })
}

interface Secrets {
  readonly config: Fields
  readonly next: Fields
  readonly values: RotationRecord['values']
}

/** With the present secrets, else with the new ones, which an earlier attempt may have made valid already. */
async function adopt(run: Run, stored: StoredBackend, { config, next, values }: Secrets): Promise<void> {
  const by = (secrets: Fields) =>
    tryOn(run, stored, secrets, (instance, call) => {
      const rotation = requireRotation(instance)
      return call((signal) => rotation.adopt(values, signal))
    })
  try {
    await by(config)
  } catch (refused) {
    if (!isRefusal(refused)) throw refused
    await by(next).catch((error: unknown) => {
      throw isRefusal(error) ? refused : error
    })
  }
}

/** Whether these secrets are certainly valid. */
async function works(run: Run, stored: StoredBackend, config: Fields): Promise<boolean> {
  const check = tryOn(run, stored, config, (instance, call) => call((signal) => instance.check(signal)))
  return check.then(
    () => true,
    () => false,
  )
}

async function forget(run: Run, record: RotationRecord): Promise<void> {
  await writeRecord(run, record, undefined)
}

/** The record stays, free for the next run. */
async function release(run: Run, record: RotationRecord): Promise<void> {
  if (run.core.store.hasOtherNodes) await writeRecord(run, record, { ...record, claimedUntil: 0 })
}

async function writeRecord({ core, uid }: Run, old: RotationRecord, next: RotationRecord | undefined) {
  for (;;) {
    const stored = await core.store.backends.find(uid)
    if (stored === undefined || openRotation(core, stored)?.id !== old.id || stored.endedAt !== null) return
    const text = next === undefined ? null : sealRotation(core, uid, next)
    const change = core.store.backends.setRotation(stored, text)
    if ((await commit(core, SYSTEM, change, { urgent: true })).done) return
  }
}

function requireRotation({ rotation }: Backend): Rotation {
  if (rotation === undefined)
    throw invalid(
      'This backend has no root secret that Mayfly can replace by itself. Replace it at the upstream, then enter it with "mayfly backend update".',
    )
  return rotation
}

async function requireStored(core: Core, uid: string): Promise<StoredBackend> {
  const stored = await core.store.backends.find(uid)
  if (stored === undefined || stored.endedAt !== null) throw new Problem('backend_not_found')
  return stored
}

function requireConfig(core: Core, stored: StoredBackend): Fields {
  const config = openStoredConfig(core, stored)
  if (config !== undefined) return config
  throw new Problem('conflict', {
    message: 'The stored configuration of this backend cannot be opened; enter it again.',
  })
}

const claimOf = (core: Core, until: number) => until + core.settings.upstreamTimeoutMs

function underWay(): Problem {
  return new Problem('conflict', {
    message: 'Another rotation or change of this backend is under way; try again in a minute.',
  })
}
