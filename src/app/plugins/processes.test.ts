import { describe, expect, test } from 'vitest'
import { findUser } from './processes.ts'

const own = process.geteuid?.() ?? 0
const passwd = () =>
  `root:x:0:0::/root:/bin/sh\nplugins:x:${own}:77::/:/bin/false\n123:x:${own}:88::/:/bin/false\n`

describe('plugin_user', () => {
  test.each([
    ['plugins', { uid: own, gid: 77 }],
    // A name may consist of digits.
    ['123', { uid: own, gid: 88 }],
  ])('%s is found in /etc/passwd', (text, user) => expect(findUser(text, passwd)).toEqual(user))

  test('that does not exist stops the start', () => {
    expect(() => findUser('nobody-here', passwd)).toThrow('there is no user nobody-here')
  })

  test('may be a number that has no name', () => {
    expect(findUser('4711', passwd, 0)).toEqual({ uid: 4711, gid: 4711 })
  })

  test('other than its own stops a server without the rights of root', () => {
    expect(() => findUser('4711', passwd, 1_000)).toThrow('only a server that runs as root')
  })
})
