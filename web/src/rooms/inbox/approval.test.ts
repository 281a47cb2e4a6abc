import { expect, test } from 'vitest'
import type { PendingEnrollment } from '../../../../src/client/wire.ts'
import { approvalOf, isAdministering, possible, tokenOf } from './approval.ts'

const row = {
  scopes: ['orders:read', 'payments:*', 'nowhere:x'],
  difference: { added: ['payments:*'], present: ['orders:read'], impossible: ['nowhere:x'] },
} as unknown as PendingEnrollment
const all = new Set(row.scopes)

test('an approval as requested sends nothing', () => {
  expect(approvalOf(row, { scopes: all, given: '', lifetime: '', note: ' ', isReplacing: false })).toEqual({})
})

test('an approval in part sends the scopes that are left, in their order, the time, the note and the replacement', () => {
  expect(
    approvalOf(row, {
      scopes: new Set(['nowhere:x', 'orders:read']),
      given: 'ignored',
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
  expect(
    approvalOf(row, { scopes: new Set(), given: '', lifetime: '', note: '', isReplacing: false }),
  ).toEqual({
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

test('an approval of a claim sends what was typed, also nothing: the server says that it needs some', () => {
  const claim = { type: 'claim', scopes: [] } as unknown as PendingEnrollment
  const choice = { scopes: new Set<string>(), lifetime: '8h', note: '', isReplacing: false }
  expect(approvalOf(claim, { ...choice, given: ' orders:read\nshop:*, x ' })).toEqual({
    scopes: ['orders:read', 'shop:*', 'x'],
    expires_in: '8h',
  })
  expect(approvalOf(claim, { ...choice, given: '' }).scopes).toEqual([])
})

test('what a token says may have any form', () => {
  const of = (metadata: unknown) => tokenOf({ metadata } as PendingEnrollment)
  expect(of(null)).toEqual({ platform: '', issuer: '', subject: '', claims: [], leftOut: 0 })
  expect(of({ platform: 1, subject: {}, claims: 'x', claims_left_out: '3' })).toEqual(of(null))
  expect(of({ subject: 's', claims: { a: [1] }, claims_left_out: 2 })).toMatchObject({
    subject: 's',
    claims: [['a', [1]]],
    leftOut: 2,
  })
})
