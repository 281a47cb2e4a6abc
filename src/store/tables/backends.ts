import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { BackendRow } from '../schema/rows.ts'

export function createBackends(engine: Engine) {
  return { ...backendReads(engine), ...backendSteps(engine) }
}

function backendReads({ build, read }: Engine) {
  const living = () => build.selectFrom('backends').selectAll().where('ended_at', 'is', null)
  return {
    findByName: async (nameKey: string): Promise<BackendRow | undefined> =>
      (await read<BackendRow>(living().where('name_key', '=', nameKey)))[0],
    find: async (uid: string): Promise<BackendRow | undefined> =>
      (await read<BackendRow>(build.selectFrom('backends').selectAll().where('uid', '=', uid)))[0],
    list: (): Promise<BackendRow[]> => read<BackendRow>(living().orderBy('name_key')),
    /** With those that have ended but whose credentials still need them. */
    listOpen: (): Promise<BackendRow[]> =>
      read<BackendRow>(
        build.selectFrom('backends').selectAll().where('config', 'is not', null).orderBy('uid'),
      ),
  }
}

function backendSteps({ build }: Engine) {
  return {
    change: (uid: string, version: number, set: Partial<BackendRow>, now: number): Step[] => [
      run(
        build
          .updateTable('backends')
          .set({ ...set, version: version + 1, changed_at: now })
          .where('uid', '=', uid)
          .where('version', '=', version)
          .where('ended_at', 'is', null),
        1,
      ),
      { op: 'invalidate' },
    ],
    /**
     * Holds only while nothing of it is alive. Goes AFTER the step that changes the row: on PostgreSQL that one waits
     * for the issues that hold a guard on it, and only a later one sees their credentials.
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
    end: (uid: string, now: number): Step[] => [
      run(
        build
          .updateTable('backends')
          .set((e) => ({ ended_at: now, changed_at: now, version: e('version', '+', 1) }))
          .where('uid', '=', uid)
          .where('ended_at', 'is', null),
        1,
      ),
      { op: 'invalidate' },
    ],
    /** The last credential of an ended backend is gone: its keys are forgotten. */
    erase: (uid: string): Step =>
      run(
        build
          .updateTable('backends')
          .set({ config: null })
          .where('uid', '=', uid)
          .where('ended_at', 'is not', null)
          .where('config', 'is not', null),
        1,
      ),
  }
}
