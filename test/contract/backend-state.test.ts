import { describe, expect, test } from 'vitest'
import { createBackendState } from '../../src/core/backends/backend-state.ts'
import { createSealer, parseMasterKeys } from '../../src/keys/seal.ts'
import { newMasterKey } from '../support/master-key.ts'
import { backendRow, DIALECTS, T0 } from '../support/store.ts'
import { useStore } from '../support/use-store.ts'

const sealer = createSealer(parseMasterKeys(newMasterKey()))

describe.each(DIALECTS)('what a kind keeps of a backend, on %s', (dialect) => {
  const opened = useStore(dialect)

  test('is sealed, replaced only by who knows it, and seen by every node', async () => {
    const { store } = opened
    const backend = backendRow()
    const [one, other] = [0, 1].map(() => createBackendState({ store, sealer }, backend.uid))
    if (one === undefined || other === undefined) throw new Error('unreachable')
    expect(await one.read()).toBeUndefined()
    const first = await Promise.all([one.replace(undefined, 'rt-1'), other.replace(undefined, 'rt-2')])
    expect(first.filter(Boolean)).toHaveLength(1)
    const known = await one.read()
    expect(await other.read()).toBe(known)
    expect(await one.replace('rt-0', 'rt-3')).toBe(false)
    const both = await Promise.all([one.replace(known, 'rt-3'), other.replace(known, 'rt-4')])
    expect(both.filter(Boolean)).toHaveLength(1)
    expect(await store.meta.get(`state.${backend.uid}`)).toMatch(/^s1\./)
    expect(await createBackendState({ store, sealer }, backendRow().uid).read()).toBeUndefined()
  })

  test('goes with the configuration of a deleted backend', async () => {
    const { store, done } = opened
    const backend = backendRow()
    await done({ op: 'insert', table: 'backends', row: backend })
    const state = createBackendState({ store, sealer }, backend.uid)
    await state.replace(undefined, 'rt-1')
    await done(...store.backends.end(backend.uid, T0))
    expect(await state.read()).toBe('rt-1')
    await done(...store.backends.erase(backend.uid))
    expect(await state.read()).toBeUndefined()
  })
})
