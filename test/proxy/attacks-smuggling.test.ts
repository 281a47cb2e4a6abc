import { describe, expect, it } from 'vitest'
import type { Asked, Header } from '../../src/proxy/rules/asked.ts'
import { createRules } from '../../src/proxy/rules/decide.ts'
import { readHttp2 } from '../../src/proxy/rules/http2.ts'
import * as w from './rules-world.ts'

/** The attack list: messages that two programs read in two ways. */
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

describe('smuggling', () => {
  it.each<[string, Header[]]>([
    [
      'Content-Length and Transfer-Encoding',
      [
        ['Content-Length', '4'],
        ['Transfer-Encoding', 'chunked'],
      ],
    ],
    [
      'two Content-Length',
      [
        ['Content-Length', '4'],
        ['content-length', '5'],
      ],
    ],
    [
      'two of one value',
      [
        ['Content-Length', '4'],
        ['Content-Length', '4'],
      ],
    ],
    ['a list of lengths', [['Content-Length', '4, 4']]],
    ['a signed length', [['Content-Length', '+4']]],
    ['a length in hex', [['Content-Length', '0x4']]],
    ['no length', [['Content-Length', '']]],
    ['a huge length', [['Content-Length', '99999999999999999999']]],
    [
      'two Transfer-Encoding',
      [
        ['Transfer-Encoding', 'chunked'],
        ['Transfer-Encoding', 'identity'],
      ],
    ],
    ['another coding', [['Transfer-Encoding', 'gzip, chunked']]],
    ['chunked behind a tab', [['Transfer-Encoding', '\tchunked']]],
    ['a name with a space', [['Transfer-Encoding ', 'chunked']]],
    ['a name with an underscore', [['Transfer_Encoding', 'chunked']]],
    ['another name with one', [['content_length', '4']]],
    ['obs-fold', [['X-A', 'a\r\n b']]],
    ['a bare line feed', [['X-A', 'a\nHost: evil.example']]],
    ['a bare carriage return', [['X-A', 'a\rb']]],
    ['a NUL', [['X-A', 'a\u0000b']]],
    ['an empty name', [['', 'x']]],
    ['a name with a colon', [['X:A', 'x']]],
    ['a name with a line feed', [['X\nA', 'x']]],
    ['Connection that names Host', [['Connection', 'close, host']]],
    ['Connection that names Authorization', [['Connection', 'authorization']]],
    [
      'Connection that names Content-Length',
      [
        ['Content-Length', '4'],
        ['Connection', 'content-length'],
      ],
    ],
    ['Connection that is no list', [['Connection', 'a b']]],
  ])('refuses %s', (_name, headers) => {
    expect(withHeaders(auth, ...headers)).toBe('bad_framing')
  })

  it('refuses an upgrade with a body', () => {
    const headers = { ...bearer, Connection: 'Upgrade', Upgrade: 'websocket' }
    expect(get('/public/x', headers)).toBe('inject')
    expect(get('/public/x', { ...headers, 'Content-Length': '5' })).toBe('bad_framing')
    expect(get('/public/x', { ...headers, 'Transfer-Encoding': 'chunked' })).toBe('bad_framing')
  })

  it.each<[string, Header[]]>([
    [
      'no method',
      [
        [':path', '/'],
        [':scheme', 'https'],
      ],
    ],
    [
      'a path twice',
      [
        [':method', 'GET'],
        [':path', '/'],
        [':path', '/x'],
        [':scheme', 'https'],
      ],
    ],
    [
      'an authority twice',
      [
        [':method', 'GET'],
        [':path', '/'],
        [':scheme', 'https'],
        [':authority', 'a'],
        [':authority', 'b'],
      ],
    ],
    [
      'a pseudo-header behind others',
      [
        [':method', 'GET'],
        [':path', '/'],
        ['a', 'b'],
        [':scheme', 'https'],
      ],
    ],
    [
      'extended CONNECT',
      [
        [':method', 'CONNECT'],
        [':protocol', 'websocket'],
        [':path', '/'],
        [':scheme', 'https'],
      ],
    ],
    [
      'CONNECT',
      [
        [':method', 'CONNECT'],
        [':authority', 'a'],
      ],
    ],
    [
      'an absolute path',
      [
        [':method', 'GET'],
        [':path', 'https://evil.example/'],
        [':scheme', 'https'],
      ],
    ],
    [
      'an empty path',
      [
        [':method', 'GET'],
        [':path', ''],
        [':scheme', 'https'],
      ],
    ],
    [
      'Connection',
      [
        [':method', 'GET'],
        [':path', '/'],
        [':scheme', 'https'],
        ['connection', 'close'],
      ],
    ],
    [
      'Transfer-Encoding',
      [
        [':method', 'GET'],
        [':path', '/'],
        [':scheme', 'https'],
        ['transfer-encoding', 'chunked'],
      ],
    ],
    [
      'Upgrade',
      [
        [':method', 'GET'],
        [':path', '/'],
        [':scheme', 'https'],
        ['upgrade', 'h2c'],
      ],
    ],
    [
      'TE',
      [
        [':method', 'GET'],
        [':path', '/'],
        [':scheme', 'https'],
        ['te', 'gzip'],
      ],
    ],
    [
      'upper case',
      [
        [':method', 'GET'],
        [':path', '/'],
        [':scheme', 'https'],
        ['Host', 'a'],
      ],
    ],
    [
      'an unknown pseudo-header',
      [
        [':method', 'GET'],
        [':path', '/'],
        [':scheme', 'https'],
        [':x', 'a'],
      ],
    ],
  ])('refuses HTTP/2 with %s', (_name, raw) => {
    expect(readHttp2(raw)).toBeNull()
  })

  it('in HTTP/2 :authority and Host must both be right', () => {
    const asked = (authority: string | undefined, ...headers: Header[]) =>
      outcome(
        ask('GET', `${API}/public/x`, [['authorization', `Bearer ${w.GITHUB}`], ...headers], {
          http2: { authority },
        }),
      )
    expect(asked('api.github.example')).toBe('inject')
    expect(asked('api.github.example', ['host', 'api.github.example'])).toBe('inject')
    expect(asked(undefined, ['host', 'api.github.example'])).toBe('inject')
    expect(asked('evil.example')).toBe('wrong_host')
    expect(asked('api.github.example', ['host', 'evil.example'])).toBe('wrong_host')
    expect(asked('evil.example', ['host', 'api.github.example'])).toBe('wrong_host')
    expect(asked(undefined)).toBe('bad_host')
    expect(asked('u@api.github.example')).toBe('bad_host')
  })
})

describe('what is forwarded', () => {
  const forwarded = (headers: readonly Header[], more: Partial<Asked> = {}) => {
    const verdict = rules.decide(ask('GET', `${API}/public/x`, [auth, ...headers], more))
    if (verdict.kind !== 'inject') throw new Error(JSON.stringify(verdict))
    const applied = verdict.apply(w.WORLD[0].live)
    if ('kind' in applied) throw new Error(applied.reason)
    return applied.headers.slice(2, -1)
  }

  it('has no header that any line of Connection names', () => {
    const headers: Header[] = [
      ['Connection', 'close, x-a'],
      ['X-A', '1'],
      ['X-B', '2'],
      ['connection', 'X-B'],
      ['X-C', '3'],
    ]
    expect(forwarded(headers)).toEqual([['X-C', '3']])
  })

  it('has nothing for a proxy, of ours, or of who is behind us', () => {
    const names = [
      'Proxy-Authorization',
      'Proxy-Connection',
      'X-Mayfly-Run',
      'TE',
      'Keep-Alive',
      'Upgrade',
      'HTTP2-Settings',
    ]
    const more = ['X-Forwarded-Host', 'Forwarded', 'X-Real-IP', 'Accept-Encoding', 'Sec-WebSocket-Extensions']
    expect(forwarded([...names, ...more].map((name): Header => [name, 'x']))).toEqual([])
  })

  it('asks for a reply that the mask can read', () => {
    const verdict = rules.decide(ask('GET', `${API}/public/x`, [auth, ['accept-encoding', 'gzip, br']]))
    const applied = verdict.kind === 'inject' ? verdict.apply(w.WORLD[0].live) : undefined
    expect(applied).toMatchObject({ headers: expect.arrayContaining([['Accept-Encoding', 'identity']]) })
    expect(JSON.stringify(applied)).not.toContain('gzip')
  })

  it('is an upgrade of WebSocket without extensions, and never one of h2c', () => {
    const socket: Header[] = [
      ['Connection', 'keep-alive, Upgrade'],
      ['Upgrade', 'WebSocket'],
      ['Sec-WebSocket-Key', 'k'],
    ]
    const extensions: Header = ['Sec-WebSocket-Extensions', 'permessage-deflate']
    const verdict = rules.decide(ask('GET', `${API}/public/x`, [auth, ...socket, extensions]))
    expect(verdict).toMatchObject({ kind: 'inject', upgrade: 'websocket' })
    const headers = verdict.kind === 'inject' ? verdict.apply(w.WORLD[0].live) : {}
    const text = JSON.stringify(headers)
    expect(text).toContain('["Connection","Upgrade"],["Upgrade","websocket"]')
    expect(text).not.toContain('Extensions')
    expect(
      forwarded([
        ['Connection', 'Upgrade, HTTP2-Settings'],
        ['Upgrade', 'h2c'],
        ['HTTP2-Settings', 'x'],
      ]),
    ).toEqual([])
  })
})
