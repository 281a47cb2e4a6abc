import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  DIALECTS,
  idempotencyRow,
  openTestStore,
  someCredential,
  T0,
  type TestStore,
} from '../support/store.ts'

describe.each(DIALECTS)('idempotency records on %s', (dialect) => {
  let opened: TestStore
  beforeAll(async () => {
    opened = await openTestStore(dialect)
  })
  afterAll(() => opened.close())

  test('either a repetition or the taking back of the credential wins, never both', async () => {
    const { idempotency, credentials, commit } = opened.store
    for (let round = 0; round < 100; round += 1) {
      const credential = someCredential()
      const { id } = credential
      const row = idempotencyRow({ key_hash: id, credential_id: id, reply: 'sealed' })
      await commit([credentials.insert(credential), { op: 'insert', table: 'idempotency', row }])
      const ends = [
        () => commit([idempotency.markRepeated('ag_1', id, id, T0)]),
        () =>
          commit([
            credentials.beginRevoking(id, 'active', 'undelivered', T0, T0),
            idempotency.releaseUnrepeated('ag_1', id),
          ]),
      ]
      if (round % 2 === 0) ends.reverse()
      const outcomes = await Promise.all(ends.map((end) => end()))
      if (round % 2 === 0) outcomes.reverse()
      const [repeated, taken] = outcomes
      expect([repeated?.done, taken?.done].filter((done) => done === true)).toHaveLength(1)
      const state = (await credentials.find(id))?.state
      expect(state).toBe(repeated?.done === true ? 'active' : 'revoking')
    }
  })
})
