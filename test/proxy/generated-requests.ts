import type { Asked, Header } from '../../src/proxy/rules/asked.ts'
import * as w from './rules-world.ts'

/** Requests of somebody who knows the placeholders and the rules, and wants a secret where it must not be. */

export type Random = (below: number) => number

/** xorshift32: the same requests for the same seed. */
export function createRandom(seed: number): Random {
  let state = seed | 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

const PLACEHOLDERS = [
  w.GITHUB,
  w.OTHER_GITHUB,
  w.MODEL,
  w.BOT,
  w.KEY_ID,
  w.SESSION,
  w.REGISTRY,
  w.CLIENT,
  w.DATABASE,
  w.VAULT,
]
const AUTHORITIES = [
  ...[
    'https://api.github.example:443',
    'https://github.example:443',
    'https://model.example:443',
    'https://bot.example:443',
  ],
  ...[
    'https://s3.aws.example:443',
    'https://registry.example:443',
    'https://login.example:443',
    'http://127.0.0.1:8200',
  ],
  ...[
    'http://vault.example:80',
    'https://evil.example:443',
    'http://api.github.example:80',
    'https://model.example:8443',
  ],
  ...[
    'https://api.github.example.evil.example:443',
    'https://aws.example:443',
    'https://[::1]:443',
    'http://github.example:443',
  ],
]
const PATHS = [
  ...[
    '/repos/acme/shop/issues',
    '/public/x',
    '/user/7',
    '/graphql',
    '/user/7/tokens',
    '/v1/models',
    '/v1/organization/x',
  ],
  ...[
    `/bot${w.BOT}/send`,
    '/bucket/key',
    '/@acme%2Fshop',
    '/-/whoami',
    '/token',
    '/v1/secret',
    '/acme/shop.git/info/refs',
  ],
  ...['/repos/acme/shop/keys/1', '/', '/admin'],
]
const PIECES = [
  ...[
    '/',
    '//',
    '..',
    '.',
    '%2e%2e',
    '%2E.',
    '%2f',
    '%2F',
    '%5c',
    '\\',
    '%00',
    '%',
    '%zz',
    '%252e%252e',
    ';a=b',
    '?',
    '#',
    '%3f',
    '%23',
  ],
  ...[
    '%0d%0a',
    ' ',
    '\u0000',
    '\u00e9',
    '%c3%a9',
    '%ff',
    'graphql',
    'GRAPHQL',
    'tokens',
    '/public/',
    '/v1/',
    'public',
    '*',
    '**',
    '&',
    '=',
  ],
  ...['/../', '/./', '%61', 'organization'],
]
const METHODS = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'get',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  '*',
  '',
]
const NAMES = [
  ...[
    'Authorization',
    'authorization',
    'X-Api-Key',
    'X-Vault-Token',
    'Cookie',
    'X-Other',
    'Proxy-Authorization',
    'Connection',
  ],
  ...[
    'X-HTTP-Method-Override',
    'Content-Length',
    'Transfer-Encoding',
    'Upgrade',
    'TE',
    'X-Amz-Security-Token',
    'Accept-Encoding',
  ],
  ...['X-Forwarded-Host', 'content_length', 'Host', 'X-Original-URL', 'Accept'],
]
const VALUES = [
  'close',
  'chunked',
  '4',
  '0',
  'websocket',
  'Upgrade',
  'authorization',
  'x-other',
  'gzip',
  'a\r\nb',
  'trailers',
  '',
  'DELETE',
]

/** What would be right: most requests are that, with something changed. */
const RIGHT: readonly (readonly [authority: string, header: Header, ...paths: string[]])[] = [
  ...[w.GITHUB, w.OTHER_GITHUB].flatMap((placeholder) => [
    [
      'https://api.github.example:443',
      ['Authorization', `Bearer ${placeholder}`],
      ...[
        '/repos/acme/shop/issues',
        '/public/x',
        '/user/7',
        '/repos/acme/shop/keys/1',
        '/user/7/tokens',
        '/graphql',
      ],
    ] as const,
    [
      'https://github.example:443',
      ['Authorization', `Basic ${btoa(`x:${placeholder}`)}`],
      '/acme/shop.git/info/refs',
    ] as const,
  ]),
  ['https://model.example:443', ['X-Api-Key', w.MODEL], '/v1/models', '/v1/organization/x'],
  ['https://bot.example:443', ['Accept', '*/*'], `/bot${w.BOT}/send`],
  [
    'https://registry.example:443',
    ['Authorization', `Bearer ${w.REGISTRY}`],
    '/@acme%2Fshop',
    '/-/npm/v1/tokens',
    '/-/x',
  ],
  ['https://login.example:443', ['Authorization', `Basic ${btoa(`:${w.CLIENT}`)}`], '/token'],
  ['http://127.0.0.1:8200', ['X-Vault-Token', w.VAULT], '/v1/secret', '/'],
  [
    'https://s3.aws.example:443',
    ['Authorization', `AWS4-HMAC-SHA256 Credential=${w.KEY_ID}/20261127/eu/s3/aws4_request, Signature=0`],
    '/bucket/key',
  ],
]

export function drawRequest(random: Random): Asked {
  const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T
  const chance = (percent: number) => random(100) < percent
  const [own, credentialHeader, ...paths] = pick(RIGHT)
  const authority = chance(75) ? own : pick(AUTHORITIES)
  const [, scheme = '', name = ''] = /^(https?):\/\/(.*)$/.exec(authority) ?? []
  const host = name.replace(scheme === 'https' ? /:443$/ : /:80$/, '')
  const headers: Header[] = []
  if (!chance(3)) headers.push(['Host', chance(90) ? host : spoiledHost(random, host)])
  for (let count = chance(60) ? 0 : random(4); count > 0; count -= 1) headers.push(drawHeader(random))
  if (chance(80)) headers.push(credentialHeader)
  else if (chance(50)) headers.push(['Authorization', credential(random)])
  if (chance(5)) headers.push([pick(['X-Api-Key', 'X-Vault-Token']), pick(PLACEHOLDERS)])
  let target = drawTarget(random)
  if (chance(4))
    target = `${pick([`${scheme}://${host}`, 'https://evil.example', `https://${host}`])}${target}`
  return {
    authority: name,
    scheme: scheme === 'http' ? 'http' : 'https',
    method: chance(90) ? pick(METHODS.slice(0, 2)) : pick(METHODS),
    target,
    headers,
    ...(chance(10) && { http2: { authority: chance(80) ? host : pick([undefined, 'evil.example', '']) } }),
  }

  function drawTarget(draw: Random): string {
    let path = chance(75) ? pick(paths) : pick(PATHS)
    for (let count = draw(10) < 6 ? 0 : draw(4); count > 0; count -= 1) {
      const at = draw(path.length + 1)
      path = path.slice(0, at) + pick(PIECES) + path.slice(at)
    }
    if (chance(10)) path += `?key=${pick(PLACEHOLDERS)}`
    if (chance(5))
      path += `&${pick(['a', 'key', '_method', '%6bey'])}=${chance(50) ? pick(PLACEHOLDERS) : 'x'}`
    if (chance(4))
      path += `?X-Amz-Credential=${w.KEY_ID}%2F20261127%2Feu%2F${pick(['s3', 'sts'])}%2Faws4_request`
    return path
  }
}

function spoiledHost(random: Random, host: string): string {
  const ways = [
    ...[
      'evil.example',
      `${host}.`,
      host.toUpperCase(),
      `${host}:443`,
      `${host}:8443`,
      `u@${host}`,
      `${host}, evil.example`,
    ],
    ...[`${host}/`, '', `evil.example#${host}`, `${host}.evil.example`, `${host}\u0000`],
  ]
  return ways[random(ways.length)] ?? ''
}

function drawHeader(random: Random): Header {
  const name = NAMES[random(NAMES.length)] ?? ''
  if (random(100) < 60) return [name, VALUES[random(VALUES.length)] ?? '']
  return [name, written(random, PLACEHOLDERS[random(PLACEHOLDERS.length)] ?? '')]
}

function credential(random: Random): string {
  const placeholder = PLACEHOLDERS[random(PLACEHOLDERS.length)] ?? ''
  const service = ['s3', 'sts', 'ec2', ''][random(4)]
  const ways = [
    ...[
      `Bearer ${placeholder}`,
      `Bearer ${placeholder}`,
      `token ${placeholder}`,
      placeholder,
      `Bearer  ${placeholder}`,
    ],
    ...[
      `Basic ${btoa(`x:${placeholder}`)}`,
      `Basic ${btoa(`${placeholder}:`)}`,
      written(random, placeholder),
    ],
    `AWS4-HMAC-SHA256 Credential=${w.KEY_ID}/20261127/eu/${service}/aws4_request, SignedHeaders=host, Signature=0`,
  ]
  return ways[random(ways.length)] ?? ''
}

function written(random: Random, placeholder: string): string {
  const ways = [
    ...[
      placeholder,
      `a ${placeholder}`,
      `${placeholder}x`,
      `Bearer ${placeholder}, ${placeholder}`,
      btoa(placeholder),
    ],
    ...[
      btoa(`ab:${placeholder}`),
      placeholder.replace('m', '%6d'),
      `Basic ${btoa(`x:y${placeholder}`)}`,
      `"${placeholder}"`,
    ],
  ]
  return ways[random(ways.length)] ?? ''
}
