import { expect, test } from 'vitest'
import type { PendingEnrollment } from '../../../../src/client/wire.ts'
import { approvalOf, isAdministering, possible } from './approval.ts'

const row = {
  scopes: ['orders:read', 'payments:*', 'nowhere:x'],
  difference: { added: ['payments:*'], present: ['orders:read'], impossible: ['nowhere:x'] },
} as unknown as PendingEnrollment
const all = new Set(row.scopes)

test('an approval as requested sends nothing', () => {
  expect(approvalOf(row, { scopes: all, lifetime: '', note: ' ', isReplacing: false })).toEqual({})
})

test('an approval in part sends the scopes that are left, in their order, the time, the note and the replacement', () => {
  expect(
    approvalOf(row, {
      scopes: new Set(['nowhere:x', 'orders:read']),
      lifetime: '1h',
      note: ' seen in the office ',
      isReplacing: true,
    }),
  ).toEqual({
    scopes: ['orders:read', 'nowhere:x'],
    expires_in: '1h',
    note: 'seen in the office',
    replace: true,
  })
})

test('without any scope, an empty list is sent: nothing would mean all of them', () => {
  expect(approvalOf(row, { scopes: new Set(), lifetime: '', note: '', isReplacing: false })).toEqual({
    scopes: [],
  })
})

test('what leads nowhere is not chosen at first; without a difference everything is', () => {
  expect(possible(row)).toEqual(['orders:read', 'payments:*'])
  expect(possible({ scopes: ['a'] } as unknown as PendingEnrollment)).toEqual(['a'])
})

test('admin scopes are those of the first part alone', () => {
  expect(['admin', 'admin:*', 'admin:agents:read'].every((one) => isAdministering([one]))).toBe(true)
  expect(isAdministering(['orders:admin', 'administration:x', '*'])).toBe(false)
})
