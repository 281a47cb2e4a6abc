import type { Asked, Header } from '../../src/proxy/rules/asked.ts'
import * as w from './rules-world.ts'

/**
 * What may be sent, said again for each credential by hand, slowly, and with no code of the proxy: which secret may go where, and that
 * everything else of a request stays as it was.
 */

interface Place {
  readonly secret: string
  readonly placeholder: string
  readonly where: readonly string[]
  mayCall(method: string, path: string): boolean
}

const one = (name: string) => (method: string, path: string) => RULES[name]?.(method, path) === true
const RULES: Record<string, (method: string, path: string) => boolean> = {
  github: (method, path) =>
    (/^\/repos\/acme\/shop(\/|$)/.test(path) && ['GET', 'PATCH'].includes(method)) ||
    (path === '/repos/acme/shop/issues' && method === 'POST') ||
    /^\/public\/[^/]+$/.test(path) ||
    /^\/user(\/|$)/.test(path) ||
    (path === '/graphql' && method === 'POST') ||
    /^\/acme\/shop\.git(\/|$)/.test(path),
  model: (method, path) => /^\/v1(\/|$)/.test(path) && ['GET', 'POST'].includes(method),
  bot: (_method, path) => /^\/bot[^/]*\/[^/]+$/.test(path),
  npm: (method, path) =>
    (path.startsWith('/@acme/') && ['GET', 'PUT'].includes(method)) || /^\/-(\/|$)/.test(path),
  oauth: (method, path) => path === '/token' && method === 'POST',
  vault: () => true,
}
const github = {
  where: ['https://api.github.example:443', 'https://github.example:443'],
  mayCall: one('github'),
}
const PLACES: readonly Place[] = [
  { secret: w.GITHUB_SECRET, placeholder: w.GITHUB, ...github },
  { secret: w.OTHER_SECRET, placeholder: w.OTHER_GITHUB, ...github },
  {
    ...{ secret: 'sk-ant-api03-REALREALREALREAL/+&', placeholder: w.MODEL },
    ...{ where: ['https://model.example:443'], mayCall: one('model') },
  },
  { secret: w.BOT_SECRET, placeholder: w.BOT, where: ['https://bot.example:443'], mayCall: one('bot') },
  {
    ...{ secret: 'npm_REALREALREAL', placeholder: w.REGISTRY },
    ...{ where: ['https://registry.example:443'], mayCall: one('npm') },
  },
  {
    secret: w.CLIENT_SECRET,
    placeholder: w.CLIENT,
    where: ['https://login.example:443'],
    mayCall: one('oauth'),
  },
  {
    secret: 'hvs.REALREALREAL',
    placeholder: w.VAULT,
    where: ['http://127.0.0.1:8200'],
    mayCall: one('vault'),
  },
]
/** Denied whatever allows it, however a server reads the path. */
const DENIED: Record<string, RegExp> = {
  'https://api.github.example:443': /^\/(?:user\/[^/]+\/tokens\/?|repos\/acme\/shop\/keys(?:\/.*)?)$/i,
  'https://model.example:443': /^\/v1\/organization(?:\/.*)?$/i,
  'https://registry.example:443': /^\/-\/npm\/v1\/tokens(?:\/.*)?$/i,
}
const ALL_PLACEHOLDERS = [
  ...PLACES.map(({ placeholder }) => placeholder),
  w.KEY_ID,
  w.SECRET_KEY,
  w.SESSION,
  w.DATABASE,
]
const ALL_SECRETS = [...PLACES.map(({ secret }) => secret), 'AKIAREAL', 'REALKEY', 'REALSESSION', 'pg-REAL']

/** Every text that somebody could make of this one: decoded, and each run of base64 in it decoded, too. */
function readings(text: string): string {
  const decoded = text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString(),
  )
  const runs = [...text.matchAll(/[0-9A-Za-z+/_-]{8,}/g)].flatMap(([run]) =>
    [0, 1, 2, 3].map((skip) => Buffer.from(run.slice(skip), 'base64').toString()),
  )
  return [text, decoded, ...runs].join('\n')
}

const textOf = (target: string, headers: readonly Header[]) =>
  readings(`${target}\n${headers.map((one) => one.join(': ')).join('\n')}`)

export interface Sent {
  readonly kind: string
  readonly target: string
  readonly headers: readonly Header[]
}

/** Returns what is wrong with what is sent. */
export function faultOf(asked: Asked, { kind, target, headers }: Sent): string | undefined {
  const text = textOf(target, headers)
  const where = `${asked.scheme}://${asked.authority}`
  const [[hostName, host] = [], ...rest] = headers
  if (hostName !== 'Host' || rest.some(([name]) => name.toLowerCase() === 'host'))
    return 'Host is not once, and first'
  if (host !== asked.authority.replace(asked.scheme === 'https' ? /:443$/ : /:80$/, ''))
    return 'Host is another'
  if (/[\r\n\0]/.test(`${target}${headers.flat().join('')}`)) return 'a line could be added'
  if (
    /^(?:.*\/)?\.\.?(?:[/?]|$)/.test(readings(target).split('\n')[1]?.split('?')[0] ?? '') &&
    isBackend(where)
  )
    return 'dots'
  const secrets = ALL_SECRETS.filter((secret) => text.includes(secret))
  if (kind !== 'inject' && secrets.length > 0) return 'a secret where none is put'
  if (kind === 'forward' && ALL_PLACEHOLDERS.some((one) => text.includes(one)))
    return 'a placeholder is forwarded'
  if (kind === 'sign')
    return /^https:\/\/[^/]*\.aws\.example:443$/.test(where) ? undefined : 'signed for another'
  if (kind !== 'inject') return undefined
  if (secrets.length !== 1) return `${secrets.length} secrets`
  return injectedFault(asked, where, { kind, target, headers }, secrets[0] ?? '')
}

const isBackend = (where: string) => PLACES.some((place) => place.where.includes(where))

function injectedFault(asked: Asked, where: string, sent: Sent, secret: string): string | undefined {
  const place = PLACES.find((one) => one.secret === secret)
  if (!place?.where.includes(where)) return 'a secret at another authority'
  const path = sent.target.split('?')[0] ?? ''
  const url = new URL(`${asked.scheme}://${asked.authority}${sent.target}`)
  if (url.pathname !== path.replaceAll('"', '%22')) return 'a client could read another path'
  const decoded = Buffer.from(decodeURIComponent(path)).toString()
  if (!place.mayCall(asked.method, decoded)) return `a path that is not allowed: ${asked.method} ${decoded}`
  const lenient = decoded.replace(/;[^/]*/g, '').replace(/\/+/g, '/')
  if (DENIED[where]?.test(lenient)) return 'a path that is denied'
  if (
    where.includes('api.github') &&
    /^\/graphql\/?$/i.test(lenient) &&
    `${asked.method} ${decoded}` !== 'POST /graphql'
  ) {
    return 'graphql'
  }
  return backFault(asked, sent, place)
}

/** With the placeholder back in place of the secret, it must be the request that was asked for. */
function backFault(asked: Asked, sent: Sent, { secret, placeholder }: Place): string | undefined {
  const back = (text: string) =>
    [secret, encodeURIComponent(secret), encodeURIComponent(secret).replaceAll('%3A', ':')].reduce(
      (rest, form) => rest.replaceAll(form, placeholder),
      text,
    )
  const target = asked.target.replace(/^https?:\/\/[^/?#]*/i, '')
  if (back(sent.target) !== (target.startsWith('/') ? target : `/${target}`)) return 'another target'
  const before = new Set(asked.headers.map(([name, value]) => `${name}: ${value}`))
  const set = ['Host', 'Accept-Encoding', 'Connection', 'Upgrade']
  for (const [name, value] of sent.headers) {
    const pair = /^Basic (.*)$/i.exec(value)?.[1]
    // The user is that of the credential that lives.
    if (
      set.includes(name) ||
      (pair !== undefined && atob(pair).includes(Buffer.from(secret).toString('latin1')))
    )
      continue
    if (!before.has(`${name}: ${back(value)}`)) return `a header that was not asked for: ${name}`
  }
  return undefined
}
