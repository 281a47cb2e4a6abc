import { expect, test } from 'vitest'
import { InvalidValue } from '../domain/fault.ts'
import { appendToList } from './append-to-list.ts'

const ENTRY = ['# Why.', '- name: new', '  claims:', "    id: '7'"]
const add = (text: string) => appendToList(text, 'list', ENTRY)

test.each([
  ['an empty file', '', "list:\n  # Why.\n  - name: new\n    claims:\n      id: '7'\n"],
  ['comments alone', '# a\n', "# a\n\nlist:\n  # Why.\n  - name: new\n    claims:\n      id: '7'\n"],
  ['no newline at the end', 'a: 1', "a: 1\n\nlist:\n  # Why.\n  - name: new\n    claims:\n      id: '7'\n"],
  [
    'a list in the middle',
    'a: 1 # one\nlist:\n  # old\n  - name: old # its name\n    x: [1,\n      2] # end\n\n# of b\nb: 2\n',
    "a: 1 # one\nlist:\n  # old\n  - name: old # its name\n    x: [1,\n      2] # end\n  # Why.\n  - name: new\n    claims:\n      id: '7'\n\n# of b\nb: 2\n",
  ],
  [
    'a list without indentation',
    'list:\n- name: old\n- name: older\nb: 2\n',
    "list:\n- name: old\n- name: older\n# Why.\n- name: new\n  claims:\n    id: '7'\nb: 2\n",
  ],
  [
    'a list at the end without a newline',
    'list:\n    -   name: old',
    "list:\n    -   name: old\n    # Why.\n    - name: new\n      claims:\n        id: '7'\n",
  ],
  [
    'entries in braces',
    'list:\n  - { name: old }\nb: 2\n',
    "list:\n  - { name: old }\n  # Why.\n  - name: new\n    claims:\n      id: '7'\nb: 2\n",
  ],
  ['text of several lines', 'list:\n  - name: |\n      a\n      b\n\nb: 2\n', undefined],
  ['lines that end as on Windows', 'list:\r\n  - name: old\r\nb: 2\r\n', undefined],
])('adds an entry to %s, and changes no other line', (_, text, added) => {
  const result = add(text)
  if (added !== undefined) expect(result).toBe(added)
  for (const line of text.split('\n')) expect(result).toContain(line)
})

test.each([
  'list: []\n',
  'list: [{ name: old }]\n',
  'list:\n',
  'list: text\n',
  'list: { a: 1 }\n',
  'list: &a\n  - name: old\nb: *a\nlist2: 1\nlist: 2\n',
  '- a\n',
  'a: [\n',
  'text\n',
])('refuses %j, where lines cannot be added', (text) => {
  expect(() => add(text)).toThrow(InvalidValue)
})
