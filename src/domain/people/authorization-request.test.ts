import { describe, expect, test } from 'vitest'
import { Problem } from '../problems.ts'
import { isRedirectUri, readAuthorizationRequest, requireHostName } from './authorization-request.ts'

const GOOD = {
  response_type: 'code',
  client_id: 'mayfly-cli',
  redirect_uri: 'http://127.0.0.1:49152/callback',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
  state: 'af0ifjsldkj',
  host: "Alice's laptop",
}
const query = (change: Record<string, string | undefined>) =>
  new URLSearchParams(
    Object.entries({ ...GOOD, ...change }).filter((one): one is [string, string] => one[1] !== undefined),
  ).toString()

test('reads what the command sends, with parameters that it does not know', () => {
  const read = {
    redirectUri: GOOD.redirect_uri,
    codeChallenge: GOOD.code_challenge,
    state: GOOD.state,
    host: GOOD.host,
  }
  expect(readAuthorizationRequest(query({}))).toEqual(read)
  expect(readAuthorizationRequest(`?${query({ scope: 'openid', other: 'x' })}`)).toEqual(read)
})

test.each(['http://127.0.0.1:1/callback', 'http://127.0.0.1:65535/callback', 'http://[::1]:8080/callback'])(
  'goes to %s',
  (uri) => {
    expect(isRedirectUri(uri)).toBe(true)
  },
)

describe('refuses', () => {
  test.each([
    ['another host', 'http://127.0.0.2:49152/callback'],
    ['a public host', 'http://evil.example:80/callback'],
    ['a name', 'http://localhost:49152/callback'],
    ['a name that begins so', 'http://127.0.0.1.evil.example:49152/callback'],
    ['https', 'https://127.0.0.1:49152/callback'],
    ['another scheme', 'javascript://127.0.0.1:49152/callback'],
    ['capitals', 'HTTP://127.0.0.1:49152/callback'],
    ['a path in capitals', 'http://127.0.0.1:49152/CALLBACK'],
    ['another path', 'http://127.0.0.1:49152/'],
    ['a longer path', 'http://127.0.0.1:49152/callback/x'],
    ['a path above', 'http://127.0.0.1:49152/x/../callback'],
    ['an escaped path', 'http://127.0.0.1:49152/c%61llback'],
    ['a query', 'http://127.0.0.1:49152/callback?x=1'],
    ['an empty query', 'http://127.0.0.1:49152/callback?'],
    ['a fragment', 'http://127.0.0.1:49152/callback#x'],
    ['user information', 'http://a@127.0.0.1:49152/callback'],
    ['a host in user information', 'http://127.0.0.1:49152@evil.example/callback'],
    ['no port', 'http://127.0.0.1/callback'],
    ['port 0', 'http://127.0.0.1:0/callback'],
    ['port 080', 'http://127.0.0.1:080/callback'],
    ['port 65536', 'http://127.0.0.1:65536/callback'],
    ['an address in hex', 'http://0x7f.1:49152/callback'],
    ['a short address', 'http://127.1:49152/callback'],
    ['a number', 'http://2130706433:49152/callback'],
    ['a mapped address', 'http://[::ffff:127.0.0.1]:49152/callback'],
    ['a long form of ::1', 'http://[0:0:0:0:0:0:0:1]:49152/callback'],
    ['all addresses', 'http://0.0.0.0:49152/callback'],
    ['a line break', 'http://127.0.0.1:49152/callback\n'],
    ['a space before', ' http://127.0.0.1:49152/callback'],
    ['a backslash', 'http:\\\\127.0.0.1:49152\\callback'],
    ['an underscore scheme of an app', 'com.example:/callback'],
    ['nothing', ''],
    ['no address', undefined],
  ])('%s', (_, uri) => {
    expect(uri !== undefined && isRedirectUri(uri)).toBe(false)
    expect(() => readAuthorizationRequest(query({ redirect_uri: uri }))).toThrow(Problem)
  })

  test.each<[string, Record<string, string | undefined>]>([
    ['no challenge', { code_challenge: undefined }],
    ['a short challenge', { code_challenge: 'abc' }],
    ['a long challenge', { code_challenge: `${GOOD.code_challenge}A` }],
    ['a padded challenge', { code_challenge: `${GOOD.code_challenge.slice(1)}=` }],
    ['a plain challenge', { code_challenge_method: 'plain' }],
    ['no method, which is plain', { code_challenge_method: undefined }],
    ['s256', { code_challenge_method: 's256' }],
    ['an implicit response', { response_type: 'token' }],
    ['two response types', { response_type: 'code token' }],
    ['no response type', { response_type: undefined }],
    ['another client', { client_id: 'agent_0' }],
    ['no client', { client_id: undefined }],
    ['no state', { state: undefined }],
    ['an empty state', { state: '' }],
    ['a long state', { state: 'a'.repeat(513) }],
    ['a state with a line break', { state: 'a\nb' }],
    ['a state beyond ASCII', { state: 'ä' }],
    ['no host', { host: undefined }],
    ['an empty host', { host: '' }],
    ['a long host', { host: 'a'.repeat(256) }],
    ['a host with an escape', { host: 'a\u001b[2Jb' }],
    ['a host that turns the text around', { host: 'a\u202eb' }],
    ['a host with a line', { host: 'a\u2028b' }],
    ['a host with a zero width space', { host: 'a\u200bb' }],
    ['a host with a space at its end', { host: 'a ' }],
  ])('%s', (_, change) => {
    expect(() => readAuthorizationRequest(query(change))).toThrow(Problem)
  })

  test('a parameter that comes twice, also one that nobody knows', () => {
    for (const more of ['&state=x', '&redirect_uri=http%3A%2F%2F127.0.0.1%3A49152%2Fcallback', '&x=1&x=1'])
      expect(() => readAuthorizationRequest(query({}) + more)).toThrow('twice')
  })
})

test('a host may be any name that people read', () => {
  for (const host of ['a', 'büro-7', 'ноутбук', 'Alice’s MacBook', 'x'.repeat(255)]) requireHostName(host)
})
