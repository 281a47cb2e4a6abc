import type { Backend, Kind, Rotation } from '../../backends/kind.ts'
import { missingKind } from '../../backends/kind-set.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { longestRotationMs } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { type Actor, type Caller, SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { isRefusal, withDeadline } from './call-upstream.ts'
import { openStoredConfig } from './definition.ts'
import { openRotation, type RotationRecord, sealRotation } from './rotation-record.ts'

type Fields = Readonly<Record<string, unknown>>

/** One rotation at work. Its steps share a deadline, so that the request takes no longer than others (ADR 0024). */
export interface Run {
  readonly core: Core
  readonly kind: Kind
  readonly uid: string
  readonly actor: Actor<Caller | undefined>
  readonly until: number
}

export function startRun(core: Core, actor: Actor<Caller | undefined>, { uid, type }: StoredBackend): Run {
  const kind = core.backends.kinds.get(type)
  if (kind === undefined) throw new Problem('conflict', { message: missingKind(type) })
  const until = core.store.now() + longestRotationMs(core.settings.upstreamTimeoutMs)
  return { core, kind, uid, actor, until }
}

type Call = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>

/** An instance of its own, opened with these secrets; each call to it has a deadline. */
export async function tryOn<T>(
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

/** By the present secrets, else by the new ones, which an earlier try may have made valid already. */
export async function adopt(
  run: Run,
  stored: StoredBackend,
  { config, next, values }: Secrets,
): Promise<void> {
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
export async function works(run: Run, stored: StoredBackend, config: Fields): Promise<boolean> {
  const check = tryOn(run, stored, config, (instance, call) => call((signal) => instance.check(signal)))
  return check.then(
    () => true,
    () => false,
  )
}

export async function forget(run: Run, record: RotationRecord): Promise<void> {
  await writeRecord(run, record, undefined)
}

/** It stays, and is free for the next one. */
export async function release(run: Run, record: RotationRecord): Promise<void> {
  if (run.core.store.dialect === 'postgres') await writeRecord(run, record, { ...record, claimedUntil: 0 })
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

export function requireRotation({ rotation }: Backend): Rotation {
  if (rotation === undefined)
    throw invalid(
      'This backend has no root secret that Mayfly can replace by itself. Replace it at the upstream, then enter it with "mayfly backend update".',
    )
  return rotation
}

export async function requireStored(core: Core, uid: string): Promise<StoredBackend> {
  const stored = await core.store.backends.find(uid)
  if (stored === undefined || stored.endedAt !== null) throw new Problem('backend_not_found')
  return stored
}

export function requireConfig(core: Core, stored: StoredBackend): Fields {
  const config = openStoredConfig(core, stored)
  if (config !== undefined) return config
  throw new Problem('conflict', {
    message: 'The stored configuration of this backend cannot be opened; enter it again.',
  })
}

export const claimOf = (core: Core, until: number) => until + core.settings.upstreamTimeoutMs

export function underWay(): Problem {
  return new Problem('conflict', {
    message: 'Another rotation or change of this backend is under way; try again in a minute.',
  })
}
