import { expect, it } from 'vitest'
import { auditRow, newBody } from '../../../test/support/store.ts'
import { encodeTime } from '../../domain/ids.ts'
import type { Change, Step } from './change.ts'
import { FRESH_MS, freshener } from './fresh.ts'

const NOW = 1_800_000_000_000
const entry = (at: number, movable = true): Step => ({
  op: 'insert',
  table: 'audit',
  row: auditRow({ id: newBody(at) }),
  ...(movable ? { movable: true } : {}),
})
const idOf = (step: Step | undefined) => (step?.op === 'insert' && step.table === 'audit' ? step.row.id : '')

it('leaves a change alone whose entries are new enough', () => {
  const change: Change = [{ op: 'invalidate' }, entry(NOW - FRESH_MS), entry(NOW + 5_000)]
  expect(freshener(NOW)(change)).toBe(change)
})

it('gives an old entry the time of now, and keeps the rest of its id', () => {
  const change: Change = [entry(NOW - FRESH_MS - 1), { op: 'invalidate' }]
  const [moved, other] = freshener(NOW)(change)
  expect(idOf(moved)).toBe(encodeTime(NOW) + idOf(change[0]).slice(10))
  expect(other).toBe(change[1])
})

it('moves no entry that may be there already under its id', () => {
  const change: Change = [entry(NOW - 60_000, false)]
  expect(freshener(NOW)(change)).toBe(change)
})

it('moves the entries that a statement inserts', () => {
  const old: Step = {
    op: 'run',
    sql: '…',
    params: [encodeTime(NOW - 60_000), encodeTime(1)],
    rows: 'any',
    timeAt: 0,
  }
  expect(freshener(NOW)([old])).toEqual([{ ...old, params: [encodeTime(NOW), encodeTime(1)] }])
})
