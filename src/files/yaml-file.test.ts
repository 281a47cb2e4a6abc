import { expect, test } from 'vitest'
import { parseConfigText } from './yaml-file.ts'

test('takes time in proportion to the file: 150,000 keys, each located, in seconds and not in minutes', () => {
  const names = Array.from({ length: 150_000 }, (_, index) => index.toString(36))
  const file = parseConfigText('x.yaml', names.map((name) => `${name}:\n`).join(''))
  expect(names.map((name) => file.locate([name], 'key'))).toEqual(
    names.map((_, index) => `x.yaml:${index + 1}:1`),
  )
})

test('names each place of a repeated key, in nested mappings, too', () => {
  expect(() => parseConfigText('x.yaml', 'a: { b: 1, b: 2 }\nc: 3\n"c": 4\n')).toThrow(
    expect.objectContaining({
      faults: [
        { source: 'x.yaml:3:1', message: 'not valid YAML: this key appears twice' },
        { source: 'x.yaml:1:12', message: 'not valid YAML: this key appears twice' },
      ],
    }),
  )
})
