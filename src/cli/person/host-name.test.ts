import { expect, test } from 'vitest'
import { hostName } from './host-name.ts'

test.each([
  ['laptop.example.com', 'laptop.example.com'],
  ['Bob\u2019s Mac', 'Bob-s-Mac'],
  ['\x1b]0;owned\x07host\r\n', '-]0;owned-host-'],
  ['\u202efdp.exe', '-fdp.exe'],
  ['', 'unknown'],
  ['h'.repeat(300), 'h'.repeat(255)],
])('%j is sent as %j', (name, sent) => {
  expect(hostName(name)).toBe(sent)
})

test('without a name it is that of this machine', () => {
  expect(hostName()).toMatch(/^[\x21-\x7e]{1,255}$/)
})
