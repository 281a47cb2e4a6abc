import { isRedirected, readConfig, secretFields } from '../../backends/config-fields.ts'
import type { Kind } from '../../backends/kind.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { Problem } from '../../domain/problems.ts'
import { type Actor, SYSTEM } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { requireWholeBackend } from './backend-power.ts'
import { asProblem, describe, isRefusal } from './call-upstream.ts'
import { sealConfig } from './definition.ts'
import {
  isClaimed,
  openRotation,
  type RotationRecord,
  rotateAlone,
  rotationBy,
  sealRotation,
} from './rotation-record.ts'
import {
  adopt,
  claimOf,
  forget,
  type Run,
  release,
  requireConfig,
  requireRotation,
  requireStored,
  startRun,
  tryOn,
  underWay,
  works,
} from './rotation-run.ts'

type Fields = Readonly<Record<string, unknown>>

/** The result of a rotation. Times in epoch ms. */
export interface RootRotation {
  readonly name: string
  /** The fields that have new values. */
  readonly fields: readonly string[]
  readonly rotatedAt: number
  /** It completed one that was interrupted. */
  readonly isResumed: boolean
  /** The old secrets are valid no more. False: the server goes on trying to end them. */
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
  const rotated = await rotateAlone(stored.uid, async () => {
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
      await rotateAlone(stored.uid, async () => {
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

/** A record of a run that was interrupted, claimed for this one. Throws `conflict` where a node may still be at it. */
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

/** From the stored proposal to its end. Throws with the proposal still stored where it may be the valid one. */
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
    const after: StoredBackend = {
      ...before,
      sealedConfig: sealConfig(core, uid, { ...config, ...record.values }),
      version: before.version + 1,
      changedAt: core.store.now(),
    }
    const outcome = await commit(
      core,
      SYSTEM,
      [
        ...setRotation(before, left === undefined ? null : sealRotation(core, uid, left)),
        ...change(before, after),
        core.store.audit.append({
          ...record.by,
          id: core.ids.body(),
          at: core.store.now(),
          action: 'backend.root_rotated',
          outcome: 'ok',
          backend: before.name,
          credentialId: null,
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
  // An administrator has entered an old one again meanwhile, which is valid until it is ended.
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

/** A kind proposes secrets, with what names them (the id of an access key); the configuration stays valid, and means the same upstream. */
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
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  })
}
