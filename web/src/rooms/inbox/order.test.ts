import { expect, test } from 'vitest'
import type { PendingEnrollment } from '../../../../src/client/wire.ts'
import { arrange, leads, nextOf } from './order.ts'

const row = (id: string, name: string, ip = '192.0.2.7') =>
  ({ id, name, ip_address: ip }) as unknown as PendingEnrollment
const idsOf = (placed: ReturnType<typeof arrange>) =>
  placed.map(({ row: { id }, isGone }) => (isGone ? `-${id}` : id))

test('what arrives together is grouped by agent, the agent that asked first at the top', () => {
  const placed = arrange([], [row('1', 'b'), row('2', 'a'), row('3', 'b'), row('4', 'a')])
  expect(idsOf(placed)).toEqual(['1', '3', '2', '4'])
  expect(placed.map((_, at) => leads(placed, at))).toEqual([2, 0, 2, 0])
})

test('nothing that is shown moves: new ones come after it, and what is gone keeps its place', () => {
  const before = arrange([], [row('1', 'b'), row('2', 'a'), row('3', 'b')])
  const after = arrange(before, [row('1', 'b', '198.51.100.1'), row('2', 'a'), row('4', 'a'), row('5', 'b')])
  expect(idsOf(after)).toEqual(['1', '-3', '2', '4', '5'])
  expect(after[0]?.row.ip_address).toBe('198.51.100.1')
  // It is there again: the listing was read in the middle of a change.
  expect(idsOf(arrange(after, [row('1', 'b'), row('3', 'b')]))).toEqual(['1', '3', '-2', '-4', '-5'])
})

test('after a decision the next one that waits is looked at, or the one before', () => {
  const placed = arrange(arrange([], [row('1', 'a'), row('2', 'a'), row('3', 'a'), row('4', 'a')]), [
    row('1', 'a'),
    row('2', 'a'),
    row('4', 'a'),
  ])
  expect(nextOf(placed, '2')).toBe('4')
  expect(nextOf(placed, '4')).toBe('2')
  expect(nextOf([...placed.slice(2, 3)], '3')).toBeUndefined()
  // One that is not in the list, because a link opened it.
  expect(nextOf(placed, 'other')).toBe('1')
})
