import { expect, test } from 'vitest'
import { checkProfileName, newProfileName, type Profile } from './profiles.ts'

const profile: Profile = { server: 'https://other.example', login: 'bearer', secret_in: 'file' }
const none = { profiles: {} }

test('the profile of a server is named after its host', () => {
  expect(newProfileName('https://mayfly.example.com', none)).toBe('mayfly.example.com')
})

test('a name that another profile has gets a digest of the address', () => {
  const known = { profiles: { 'mayfly.example.com': profile } }
  expect(newProfileName('https://mayfly.example.com', known)).toMatch(/^mayfly\.example\.com-[0-9a-f]{8}$/)
})

test('no two servers get the same name, and every name is valid', () => {
  const servers = [
    'https://h.example',
    'http://h.example',
    'https://h.example:8443',
    'https://h.example-8443',
    'https://h.example/team/a',
    'https://h.example/team-a',
    'https://h.example/team/a/',
    'http://[::1]:8620',
    'http://[::1]/8620',
    'http://1-8620',
    'unix:/run/mayfly.sock',
    'unix:/run-mayfly.sock',
    'unix:/_',
    `https://${'a'.repeat(60)}.example`,
    `https://${'a'.repeat(60)}.example/b`,
    `https://h.example/${'x'.repeat(80)}1`,
    `https://h.example/${'x'.repeat(80)}2`,
  ]
  const names = servers.map((server) => checkProfileName(newProfileName(server, none)))
  expect(new Set(names).size).toBe(servers.length)
})
