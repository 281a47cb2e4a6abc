import type { Step } from './change.ts'
import type { Engine } from './engine.ts'
import { run } from './run.ts'
import type { BackendRow } from './schema.ts'

export function createBackends(engine: Engine) {
  const { build, read } = engine
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
      { op: 'forget' },
    ],
    end: (uid: string, now: number): Step[] => [
      run(
        build
          .updateTable('backends')
          .set((e) => ({ ended_at: now, changed_at: now, version: e('version', '+', 1) }))
          .where('uid', '=', uid)
          .where('ended_at', 'is', null),
        1,
      ),
      { op: 'forget' },
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
