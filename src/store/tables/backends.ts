import { nameKey } from '../../domain/agent.ts'
import { type BackendEnding, backendKeys, type StoredBackend } from '../../domain/backend.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { BackendRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'
import { lastRevocations } from './last-revocations.ts'

const { backends } = codecs

export function createBackends(engine: Engine) {
  return {
    ...backendReads(engine),
    ...backendSteps(engine),
    ...endSteps(engine),
    ...lastRevocations(engine),
  }
}

function backendReads({ build, read }: Engine) {
  const all = () => build.selectFrom('backends').selectAll()
  return {
    /** Among those that are not deleted. */
    findByName: async (name: string): Promise<StoredBackend | undefined> => {
      const living = all().where('ended_at', 'is', null)
      return (await read<BackendRow>(living.where('name_key', '=', nameKey(name)))).map(backends.decode)[0]
    },
    /** The spelling of the last backend with this name, deleted or not. */
    spellingOf: async (name: string): Promise<string | undefined> => {
      const named = build.selectFrom('backends').select('name').where('name_key', '=', nameKey(name))
      return (await read<{ name: string }>(named.orderBy('uid', 'desc').limit(1)))[0]?.name
    },
    /** Whether any backend, deleted or not, has this name. */
    isNameUsed: async (name: string): Promise<boolean> => {
      const named = build.selectFrom('backends').select('uid').where('name_key', '=', nameKey(name)).limit(1)
      return (await read<{ uid: string }>(named)).length > 0
    },
    find: async (uid: string): Promise<StoredBackend | undefined> =>
      (await read<BackendRow>(all().where('uid', '=', uid))).map(backends.decode)[0],
    /** Including those that are deleted but whose credentials still need them. */
    listOpen: async (): Promise<StoredBackend[]> =>
      (await read<BackendRow>(all().where('config', 'is not', null).orderBy('uid'))).map(backends.decode),
  }
}

/** A statement for one backend that is not deleted. */
function updateLiving({ build }: Engine, uid: string) {
  return build.updateTable('backends').where('uid', '=', uid).where('ended_at', 'is', null)
}

const stale = { op: 'invalidate', topic: 'backends' } as const

function backendSteps(engine: Engine) {
  const { build } = engine
  return {
    /** Refused as not unique when the name is taken. */
    insert: (backend: StoredBackend): Step[] => [insert('backends', backends.encode(backend)), stale],
    /** Writes the differences. Refused when the backend has changed since it was read, or was deleted. */
    change: (before: StoredBackend, after: StoredBackend): Step[] => {
      const old: Readonly<Record<string, unknown>> = { ...backends.encode(before) }
      const set = Object.entries(backends.encode(after)).filter(([column, value]) => value !== old[column])
      const unchanged = updateLiving(engine, before.uid).where('version', '=', before.version)
      return [run(unchanged.set(Object.fromEntries(set)), 1), stale]
    },
    /** Writes what is stored of a rotation. Refused when the backend or its rotation has changed since, or was deleted. */
    setRotation: (
      { uid, version, sealedRotation: old }: Pick<StoredBackend, 'uid' | 'version' | 'sealedRotation'>,
      rotation: string | null,
    ): Step[] => [
      run(
        updateLiving(engine, uid)
          .set({ rotation })
          .where('version', '=', version)
          .where('rotation', old === null ? 'is' : '=', old),
        1,
      ),
      stale,
    ],
    /**
     * Refused while the backend has credentials. Place it AFTER the step that changes the row: on PostgreSQL that step
     * waits for the issues that hold a guard on the row, and only a later step sees their credentials.
     */
    requireIdle: (uid: string): Step =>
      run(
        build
          .updateTable('backends')
          .set({ uid })
          .where('uid', '=', uid)
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(
                selectFrom('credentials')
                  .select('id')
                  .where('backend_uid', '=', uid)
                  .where('due_at', 'is not', null),
              ),
            ),
          ),
        1,
      ),
  }
}

function endSteps(engine: Engine) {
  const { build } = engine
  return {
    /** Refuses every further issue, and keeps the name taken until `end`. */
    beginEnding: (uid: string, ending: BackendEnding): Step[] => [
      run(
        updateLiving(engine, uid)
          .set((e) => ({
            ending: JSON.stringify(ending),
            changed_at: ending.since,
            version: e('version', '+', 1),
          }))
          .where('ending', 'is', null),
        1,
      ),
      stale,
    ],
    end: (uid: string, now: number): Step[] => [
      run(
        updateLiving(engine, uid).set((e) => ({
          ended_at: now,
          ending: null,
          changed_at: now,
          version: e('version', '+', 1),
        })),
        1,
      ),
      stale,
    ],
    /** Erases the configuration of a deleted backend whose last credential is settled, and what its kind kept. */
    erase: (uid: string): Step[] => [
      run(
        build
          .updateTable('backends')
          .set({ config: null, rotation: null })
          .where('uid', '=', uid)
          .where('ended_at', 'is not', null)
          .where('config', 'is not', null),
        1,
      ),
      run(build.deleteFrom('meta').where('key', 'in', backendKeys(uid)), 'any'),
      stale,
    ],
  }
}
