import type { HttpUse, Rule, Use } from '../../../src/domain/use.ts'
import { matchesPath, readPathPattern } from '../../../src/domain/use-pattern.ts'

/** Whether uses permit a request to an origin, as ADR 0070 says: refused where any of them denies it, else where none allows it. */
export function permits(uses: readonly Use[], method: string, url: string): boolean {
  const { origin, pathname } = splitUrl(url)
  const here = uses.filter((use): use is HttpUse => use.protocol === 'http' && isAt(use, origin))
  if (here.some(({ deny }) => deny.some((rule) => denies(rule, method, pathname)))) return false
  return here.some(({ allow }) => allow.some((rule) => allows(rule, method, pathname)))
}

/** Byte for byte: a parser would resolve dots and escapes. */
function splitUrl(url: string) {
  const [, origin = '', pathname = ''] = /^(https?:\/\/[^/]+)(\/[^?]*)/.exec(url) ?? []
  return { origin, pathname }
}

function isAt({ origin }: HttpUse, asked: string): boolean {
  const [scheme = '', host = ''] = origin.split('//')
  return host.startsWith('*.')
    ? asked.startsWith(`${scheme}//`) && asked.endsWith(host.slice(1))
    : origin === asked
}

const hasMethod = ({ methods }: Rule, method: string) => methods[0] === '*' || methods.includes(method)

function allows(rule: Rule, method: string, pathname: string): boolean {
  const parts = pathname.slice(1).split('/')
  const isOdd = /%2f/i.test(pathname) || parts.slice(0, -1).includes('')
  if (!hasMethod(rule, method) || (isOdd && rule.slashes !== true)) return false
  return matches(rule, parts.map(decodeURIComponent), rule.caseless === true)
}

/** A server may read an escaped slash as a slash, drop what follows a semicolon, and know no upper case. */
function denies(rule: Rule, method: string, pathname: string): boolean {
  if (!hasMethod(rule, method)) return false
  const whole = pathname.slice(1).split('/').map(decodeURIComponent)
  const split = whole.flatMap((part) => part.split('/'))
  const plain = (parts: readonly string[]) =>
    parts.map((part) => part.replace(/;.*/, '')).filter((part) => part !== '')
  return [whole, split].some((parts) => matches(rule, plain(parts), true))
}

function matches({ path, slashes }: Rule, parts: readonly string[], isCaseless: boolean): boolean {
  const fold = (text: string) => (isCaseless ? text.toLowerCase() : text)
  const pattern = readPathPattern(fold(path), slashes === true)
  if (typeof pattern === 'string') throw new Error(`${path} ${pattern}`)
  return matchesPath(pattern, parts.length === 0 ? [''] : parts.map(fold))
}
