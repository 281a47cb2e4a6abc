import { describe, expect, test } from 'vitest'
import { isForHost, parseGitHost } from './host.ts'

describe('the host of git', () => {
  test.each([
    ['git.example.com', 'https://git.example.com'],
    ['Git.Example.COM', 'https://git.example.com'],
    ['https://git.example.com/', 'https://git.example.com'],
    ['https://git.example.com:443', 'https://git.example.com'],
    ['git.example.com:8443', 'https://git.example.com:8443'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['http://localhost', 'http://localhost'],
    ['http://[::1]:3000', 'http://[::1]:3000'],
  ])('%s is %s', (text, url) => {
    expect(parseGitHost(text).url).toBe(url)
  })

  test.each([
    '',
    ' ',
    'http://git.example.com',
    'http://127.0.0.1.example.com',
    'http://localhost.example.com',
    'ssh://git.example.com',
    'git@git.example.com:o/r',
    'https://user@git.example.com',
    'https://user:secret@git.example.com',
    'https://git.example.com/o/r',
    'https://git.example.com?x',
    'https://git.example.com#x',
    'https://*.example.com',
    'git.example.com helper = !evil',
    'a"b',
  ])('%j is refused', (text) => {
    expect(() => parseGitHost(text)).toThrow(expect.objectContaining({ exitCode: 2 }))
  })
})

describe('git asks', () => {
  const host = parseGitHost('git.example.com')
  const asked = (protocol: string, name: string) =>
    isForHost(
      host,
      new Map([
        ['protocol', protocol],
        ['host', name],
      ]),
    )
  test('for this host', () => {
    expect(asked('https', 'git.example.com')).toBe(true)
    expect(asked('https', 'GIT.example.com')).toBe(true)
    expect(asked('https', 'git.example.com:443')).toBe(true)
    expect(
      isForHost(
        parseGitHost('http://127.0.0.1:81'),
        new Map([
          ['protocol', 'http'],
          ['host', '127.0.0.1:81'],
        ]),
      ),
    ).toBe(true)
  })
  test.each([
    ['http', 'git.example.com'],
    ['https', 'git.example.com:8443'],
    ['https', 'git.example.com.evil.example'],
    ['https', 'evil.example/git.example.com'],
    // git gives the host without its percent-encoding; what stands behind such a sign is part of the name there.
    ['https', 'git.example.com/.evil.example'],
    ['https', 'git.example.com\\.evil.example'],
    ['https', 'git.example.com?.evil.example'],
    ['https', 'git.example.com#.evil.example'],
    ['https', 'evil.example@git.example.com'],
    ['https', 'git.example%2ecom'],
    ['https', 'git.exam\tple.com'],
    ['https', ' git.example.com'],
    ['https', 'git.example.com.'],
    ['https', 'git.example.com@evil.example'],
    ['https', 'example.com'],
    ['https', ''],
    ['', 'git.example.com'],
  ])('for another: %s %s', (protocol, name) => {
    expect(asked(protocol, name)).toBe(false)
    expect(isForHost(host, new Map())).toBe(false)
  })
})
