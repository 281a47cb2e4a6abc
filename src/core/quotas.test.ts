import { expect, it } from 'vitest'
import { createQuotas } from './quotas.ts'

/** A store that counts what was recorded in it. */
function recorder(limit: number) {
  const clock = { now: 1_000_000 }
  const quotas = createQuotas(() => clock.now)
  const stored = { rows: 0, counts: 0 }
  const later = () => new Promise((resolve) => setImmediate(resolve))
  const quota = {
    key: 'agent|ag_1',
    limit,
    message: 'full',
    count: async () => {
      stored.counts += 1
      const { rows } = stored
      await later()
      return rows
    },
  }
  const issue = () =>
    quotas.withPlace(quota, async () => {
      await later()
      stored.rows += 1
    })
  const many = async (count: number) => {
    const ended = await Promise.allSettled(Array.from({ length: count }, issue))
    return ended.filter(({ status }) => status === 'fulfilled').length
  }
  return { clock, quotas, quota, stored, issue, many }
}

it('admits exactly as many as the limit, however many come at once', async () => {
  const { stored, many } = recorder(5)
  expect(await many(40)).toBe(5)
  expect(stored.rows).toBe(5)
})

it('never exceeds the limit while it counts and records at the same time', async () => {
  const { clock, stored, issue } = recorder(7)
  const all = []
  for (let n = 0; n < 60; n += 1) {
    all.push(issue().catch(() => undefined))
    clock.now += 6_000
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(all)
  expect(stored.rows).toBe(7)
})

it('counts once for many, and again when the figure is old or the quota is full', async () => {
  const { clock, stored, many } = recorder(10)
  expect(await many(6)).toBe(6)
  expect(stored.counts).toBe(1)
  stored.rows = 10
  clock.now += 10_001
  expect(await many(1)).toBe(0)
  expect(stored.counts).toBe(2)
  stored.rows = 3
  expect(await many(1)).toBe(1)
  expect(stored.counts).toBe(3)
})

it('gives the place back when the work fails', async () => {
  const { quotas, quota, many } = recorder(2)
  const failing = () => quotas.withPlace(quota, () => Promise.reject(new Error('no')))
  for (let time = 0; time < 3; time += 1) await expect(failing()).rejects.toThrow('no')
  expect(await many(3)).toBe(2)
})

it('admits at most the limit on each of several nodes, and nothing after they have counted again', async () => {
  const clock = { now: 1_000_000 }
  let rows = 0
  const quota = { key: 'agent|ag_1', limit: 50, message: 'full', count: async () => rows }
  const nodes = Array.from({ length: 3 }, () => createQuotas(() => clock.now))
  const admitted = async () => {
    const before = rows
    await Promise.allSettled(
      Array.from({ length: 600 }, (_, n) =>
        nodes[n % 3]?.withPlace(quota, async () => {
          await new Promise((resolve) => setImmediate(resolve))
          rows += 1
        }),
      ),
    )
    return rows - before
  }
  const first = await admitted()
  expect(first).toBeGreaterThan(50)
  expect(first).toBeLessThanOrEqual(150)
  clock.now += 10_001
  expect(await admitted()).toBe(0)
})

it('counts again after the clock was set back', async () => {
  const { clock, stored, issue } = recorder(100)
  await issue()
  clock.now -= 3_600_000
  await issue()
  expect(stored.counts).toBe(2)
})
