import { expect, test } from 'vitest'
import { readAssignments } from './assignments.ts'

test.each<[string[] | undefined, unknown]>([
  [undefined, undefined],
  [[], undefined],
  [['a=b'], { a: 'b' }],
  [['a='], { a: '' }],
  [['a=b=c\nd'], { a: 'b=c\nd' }],
  [['n:=3', 'b:=true', 'l:=["x"]'], { n: 3, b: true, l: ['x'] }],
  [['repo=a', 'repo=b'], { repo: ['a', 'b'] }],
  [['n=3'], { n: '3' }],
])('%j', (given, value) => {
  expect(readAssignments(given, '--param')).toEqual(value)
})

test.each(['a', '=b', ':=1', 'a b=c', '1a=b', '__proto__=x', 'constructor:={}', 'n:=', 'n:=hunter2'])(
  '%j is wrong usage, and not repeated',
  (text) => {
    expect(() => readAssignments([text], '--param')).toThrow(expect.objectContaining({ exitCode: 2 }))
    expect(() => readAssignments([text], '--param')).not.toThrow(/hunter2/)
  },
)
