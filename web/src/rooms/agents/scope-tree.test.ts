import { expect, test } from 'vitest'
import { type Branch, treeOf } from './scope-tree.ts'

/** `part` with `!` where a scope ends, then what is below. */
const drawn = (branches: readonly Branch[]): unknown[] =>
  branches.map(({ part, scope, below }) => {
    const name = scope === undefined ? part : `${part}!`
    return below.length === 0 ? name : [name, ...drawn(below)]
  })

test('scopes are grouped by backend, then by part', () => {
  expect(
    drawn(treeOf(['payments:read', 'orders:invoices:write', 'orders', 'orders:invoices:read', 'admin:*'])),
  ).toEqual([
    ['admin', '*!'],
    ['orders!', ['invoices', 'read!', 'write!']],
    ['payments', 'read!'],
  ])
})

test('what has one continuation is one line, and nothing appears twice', () => {
  expect(drawn(treeOf(['github:acme/app:contents:read', 'github:acme/app:contents:read']))).toEqual([
    ['github', 'acme/app:contents:read!'],
  ])
})

test('a scope that others continue is kept', () => {
  expect(drawn(treeOf(['a:b', 'a:b:c', '*']))).toEqual(['*!', ['a', ['b!', 'c!']]])
  expect(drawn(treeOf([]))).toEqual([])
})
