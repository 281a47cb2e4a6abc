import { afterAll, beforeAll, expect } from 'vitest'
import type { Change, Outcome, Step } from '../../src/store/engine/change.ts'
import type { Table, Tables } from '../../src/store/schema/rows.ts'
import { agentRow, backendRow, type DIALECTS, openTestStore, type TestStore } from './store.ts'

export const insert = <T extends Table>(table: T, row: Tables[T]): Step =>
  ({ op: 'insert', table, row }) as Step

/** One store for the tests of a `describe`. */
export function useStore(dialect: (typeof DIALECTS)[number]) {
  let opened: TestStore
  beforeAll(async () => {
    opened = await openTestStore(dialect)
  })
  afterAll(() => opened.close())

  const commit = (change: Change): Promise<Outcome> => opened.store.commit(change)
  async function done(...change: Step[]): Promise<void> {
    expect(await commit(change)).toEqual({ done: true })
  }
  return {
    get store() {
      return opened.store
    },
    get engine() {
      return opened.engine
    },
    commit,
    done,
    /** A new agent and a new backend. */
    async living() {
      const agent = agentRow()
      const backend = backendRow()
      await done(insert('agents', agent), insert('backends', backend))
      return { agent, backend }
    },
  }
}
