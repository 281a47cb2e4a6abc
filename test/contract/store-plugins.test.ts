import { describe, expect, test } from 'vitest'
import type { StoredPlugin } from '../../src/domain/plugin.ts'
import { backendRow, DIALECTS, T0 } from '../support/store.ts'
import { insert, useStore } from '../support/use-store.ts'

const plugin = (set: Partial<StoredPlugin> = {}): StoredPlugin => ({
  name: 'acme',
  version: '1.0.0',
  protocol: 'mayfly.plugin.v1',
  runtime: 'node',
  sha256: 'a'.repeat(64),
  bytes: 12,
  origin: 'npm:mayfly-plugin-acme@1.0.0',
  description: { type: 'acme', title: 'Acme', version: '1.0.0' },
  addedAt: T0,
  ...set,
})

describe.each(DIALECTS)('plugins on %s', (dialect) => {
  const opened = useStore(dialect)
  const { commit, done } = opened

  test('a plugin has one row, which newer bytes replace', async () => {
    const { plugins } = opened.store
    const first = plugin()
    await done(...plugins.insert(first))
    expect(await plugins.find('acme')).toEqual(first)
    expect(await commit(plugins.insert(plugin({ sha256: 'b'.repeat(64) })))).toMatchObject({
      reason: 'unique',
    })
    const second = plugin({ version: '2.0.0', sha256: 'b'.repeat(64), addedAt: T0 + 1 })
    await done(...plugins.replace(first, second))
    expect(await plugins.list()).toEqual([second])
    // Somebody else was first.
    expect(await commit(plugins.replace(first, plugin({ version: '3.0.0' })))).toMatchObject({
      reason: 'rows',
    })
    expect(await commit(plugins.remove(first))).toMatchObject({ reason: 'rows' })
    await done(...plugins.remove(second))
    expect(await plugins.find('acme')).toBeUndefined()
  })

  test('stays while a backend of its kind has a configuration, also a deleted one', async () => {
    const { plugins, backends } = opened.store
    const needed = plugin({ name: 'needed' })
    const other = backendRow()
    const own = backendRow({ type: 'needed', ended_at: T0 })
    await done(...plugins.insert(needed), insert('backends', other), insert('backends', own))
    expect(await commit(plugins.remove(needed))).toMatchObject({ reason: 'rows' })
    await done(...backends.erase(own.uid))
    await done(...plugins.remove(needed))
  })

  test('each change makes the open backends stale', async () => {
    const { plugins, generation, changedAt } = opened.store
    const one = plugin({ name: 'stale' })
    const two = plugin({ name: 'stale', version: '2.0.0' })
    for (const steps of [plugins.insert(one), plugins.replace(one, two), plugins.remove(two)]) {
      const before = await generation()
      await done(...steps)
      await generation()
      expect(changedAt('backends')).toBeGreaterThan(before)
    }
  })
})
