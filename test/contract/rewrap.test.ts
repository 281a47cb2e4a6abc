import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRewrap, requireNothingLeftBehind } from '../../src/jobs/rewrap.ts'
import { createSealer, parseMasterKeys } from '../../src/keys/seal.ts'
import { createLogger } from '../../src/log/log.ts'
import type { Step } from '../../src/store/engine/change.ts'
import type { Store } from '../../src/store/open.ts'
import { newMasterKey } from '../support/master-key.ts'
import {
  backendRow,
  credentialRow,
  DIALECTS,
  idempotencyRow,
  openTestStore,
  T0,
  type TestStore,
} from '../support/store.ts'

const lines = [newMasterKey(), newMasterKey(2)]
const sealerOf = (...texts: string[]) => createSealer(parseMasterKeys(texts.join('')))
const [first, both, second] = [sealerOf(lines[0] ?? ''), sealerOf(...lines), sealerOf(lines[1] ?? '')]
const NEVER = new AbortController().signal

describe.each(DIALECTS)('another master key on %s', (dialect) => {
  let opened: TestStore
  let store: Store
  const logged: string[] = []
  const log = createLogger({
    level: 'info',
    format: 'json',
    destination: { write: (line: string) => logged.push(line) },
  })
  beforeAll(async () => {
    opened = await openTestStore(dialect)
    store = opened.store
  })
  afterAll(() => opened.close())

  const insert = (steps: readonly Step[]) => store.commit(steps)
  const credential = (sealer: typeof first, handle: string | null = 'role'): Step => {
    const row = credentialRow()
    const sealed = handle === null ? null : sealer.seal('credentials', row.id, 'handle', handle)
    return { op: 'insert', table: 'credentials', row: { ...row, handle: sealed } }
  }
  /** Turns until there is nothing more to do at once. */
  const rewrap = async (sealer: typeof first) => {
    const turn = createRewrap({ store, sealer, log })
    let turns = 1
    while (await turn(NEVER)) turns += 1
    return turns
  }
  const handles = async () => {
    const query = opened.engine.build.selectFrom('credentials').select(['id', 'handle'])
    return (await opened.engine.read<{ id: string; handle: string | null }>(query)).flatMap(
      ({ id, handle }) => (handle === null ? [] : [second.open('credentials', id, 'handle', handle)]),
    )
  }

  test('reseals everything in slices; then the old key can be removed', async () => {
    const backend = backendRow()
    const config = first.seal('backends', backend.uid, 'config', '{"password":"x"}')
    const reply = first.seal('idempotency', 'cred_1', 'reply', 'token')
    await insert([
      { op: 'insert', table: 'backends', row: { ...backend, config } },
      { op: 'insert', table: 'idempotency', row: idempotencyRow({ reply, erase_at: T0 }) },
    ])
    for (let some = 0; some < 9; some += 1)
      await insert(Array.from({ length: 500 }, (_, n) => credential(first, n % 50 === 0 ? 'role' : null)))
    await rewrap(first)
    logged.length = 0

    expect(await rewrap(both)).toBeGreaterThan(2)
    expect(await handles()).toEqual(Array(90).fill('role'))
    const stored = await store.backends.find(backend.uid)
    expect(second.open('backends', backend.uid, 'config', stored?.sealedConfig ?? '')).toBe(
      '{"password":"x"}',
    )
    // A reply that may still be told again is waited for: it is erased within minutes.
    expect(logged).toEqual([])
    await store.commit(store.tokens.tidy(T0))
    await rewrap(both)
    expect(logged).toEqual([expect.stringContaining('older ones may be removed')])
    await requireNothingLeftBehind({ store, sealer: second })
  })

  test('passes over a value that no key opens, names it once, and keeps asking for the old key', async () => {
    const backend = backendRow()
    const torn = `${first.seal('backends', 'another', 'config', '{}')}`
    const intact = backendRow()
    const config = first.seal('backends', intact.uid, 'config', '{}')
    await insert([
      { op: 'insert', table: 'backends', row: { ...backend, config: torn } },
      { op: 'insert', table: 'backends', row: { ...intact, config } },
      store.meta.replace('sealed_under', '2', ''),
    ])
    logged.length = 0
    const turn = createRewrap({ store, sealer: both, log })
    for (let runs = 0; runs < 2; runs += 1) while (await turn(NEVER));
    expect(logged).toEqual([expect.stringContaining(backend.uid)])
    const stored = await store.backends.find(intact.uid)
    expect(second.open('backends', intact.uid, 'config', stored?.sealedConfig ?? '')).toBe('{}')
    await store.commit([
      { op: 'run', sql: `DELETE FROM backends WHERE uid = '${backend.uid}'`, params: [], rows: 1 },
    ])
    while (await turn(NEVER));
    expect(logged.at(-1)).toContain('older ones may be removed')
  })

  test('refuses to start without a key that another node has sealed under', async () => {
    await insert([credential(first, 'late')])
    await expect(requireNothingLeftBehind({ store, sealer: second })).rejects.toThrow(/put its line back/)
    await requireNothingLeftBehind({ store, sealer: both })
    await rewrap(both)
    await requireNothingLeftBehind({ store, sealer: second })
    expect(await handles()).toContain('late')
  })

  test('checks everything again after another node was refused', async () => {
    const turn = createRewrap({ store, sealer: both, log })
    for (const handle of ['one', 'two']) {
      await insert([credential(first, handle)])
      await expect(requireNothingLeftBehind({ store, sealer: second })).rejects.toThrow(/put its line back/)
      while (await turn(NEVER));
      await requireNothingLeftBehind({ store, sealer: second })
      expect(await handles()).toContain(handle)
    }
  })
})
