import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openJournal } from './journal.ts'
import type { Burst } from './loader.ts'
import { comparedRow, type Round } from './scenarios/account-kinds.ts'

describe('the rows of issuing', () => {
  const figures = (perSecond: number) => ({ perSecond, p50: 1_000 / perSecond, p95: 20, p99: 30 })
  const round = (ours: number, bare: number, recorded: number): Round => ({
    ours: { ...figures(ours), cores: 1, rssMb: 100 } as Burst,
    bare: figures(bare),
    recorded: figures(recorded),
  })
  const rounds = [round(90, 1_000, 100), round(80, 1_000, 100), round(10, 1_000, 100)]

  it('have the median share of one of the two references, with a goal at eight clients', () => {
    const row = comparedRow('Issue', 'bare', 8, rounds, ({ bare }) => bare)
    expect(row).toMatchObject({ ratio: 0.08, goal: { text: '≥ 0.7', holds: false } })
    expect(row.comparedWith).toBe('bare: 1000/s, p50 1.00, p99 30.00 ms')
    const recorded = comparedRow('Issue', 'recorded', 8, rounds, (one) => one.recorded)
    expect(recorded).toMatchObject({ ratio: 0.8, goal: { text: '≥ 0.7', holds: true } })
    expect(comparedRow('Issue', 'bare', 1, rounds, ({ bare }) => bare).goal).toBeUndefined()
  })
})

it('writes once for all that wait, and each only after those before it', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mayfly-journal-'))
  const journal = await openJournal(directory)
  const order: string[] = []
  const writes = ['a', 'b', 'c'].map((name) => journal.write().then(() => order.push(name)))
  await Promise.all(writes)
  const blocksWritten = () =>
    readFileSync(join(directory, 'journal')).filter((byte) => byte === 2).length / 4_096
  expect(blocksWritten()).toBe(1)
  await journal.write().then(() => order.push('d'))
  expect(order).toEqual(['a', 'b', 'c', 'd'])
  expect(blocksWritten()).toBe(2)
  await journal.close()
  rmSync(directory, { recursive: true })
})
