import { isIP } from 'node:net'
import { isAudience } from '../domain/audience.ts'
import { parseBoundedDuration } from '../domain/duration.ts'
import { InvalidValue, quote } from '../domain/fault.ts'
import { DAY_MS, HOUR_MS } from '../domain/limits.ts'
import { isLoopbackHost } from '../domain/network/loopback.ts'
import type { Rate } from '../domain/policy.ts'
import { parseRate } from '../domain/policy.ts'

const HOST_NAME = /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*$/

/** `host:port` or `[v6]:port`. */
export function parseListen(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  const host = match?.[1] ?? match?.[2] ?? ''
  const known = match?.[1] === undefined ? isIP(host) === 4 || isHostName(host) : isIP(host) === 6
  if (match === null || !known || port > 65_535) {
    throw new InvalidValue(`${quote(text)} is not host:port; IPv6 is written as [::]:8620`)
  }
  return { host, port }
}

/** Digits and dots alone are an address, which must then be valid. */
function isHostName(text: string): boolean {
  return HOST_NAME.test(text) && !/^[\d.]+$/.test(text)
}

/** The URL exactly as relying parties compare it (RFC 8414 §2): in normal form, without a trailing slash. */
export function parseIssuer(text: string): string {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new InvalidValue('is not a URL such as https://mayfly.example.com')
  }
  if (url.username !== '' || url.password !== '')
    throw new InvalidValue('must not contain a user or password')
  if (/[?#]/.test(text)) throw new InvalidValue(`${quote(text)} must not have a query or fragment`)
  if (text.endsWith('/')) throw new InvalidValue(`${quote(text)} must not end in "/"`)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopbackHost(url.hostname))) {
    throw new InvalidValue(`${quote(text)} must start with https:// (http only for localhost)`)
  }
  const normal = url.href.replace(/\/$/, '')
  if (normal !== text) throw new InvalidValue(`${quote(text)} must be written as ${quote(normal)}`)
  return text
}

/** A base address over http or https, without a login, a query or a fragment. */
export function parseEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === ''
  if (!isPlain || url.username !== '' || url.password !== '')
    // The value may hold a password.
    throw new InvalidValue(
      'is not an address such as http://127.0.0.1:4318, without a login, query or fragment',
    )
  return url.href.replace(/\/$/, '')
}

/** A CIDR network; a single address gets `/32` or `/128`. */
export function parseCidr(text: string): string {
  const [address = '', prefix, more] = text.split('/')
  const family = address.includes('%') ? 0 : isIP(address)
  const most = family === 4 ? 32 : 128
  const length = prefix ?? String(most)
  if (family === 0 || more !== undefined || !/^\d{1,3}$/.test(length) || Number(length) > most) {
    throw new InvalidValue(`${quote(text)} is not a network such as 10.0.0.0/8`)
  }
  if (Number(length) === 0) throw new InvalidValue(`${quote(text)} would trust every client`)
  return `${address}/${Number(length)}`
}

/** Never quotes the value: it may hold a password. */
export function parseDatabaseUrl(text: string): string {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new InvalidValue('is not a URL such as postgres://user@host:5432/database')
  }
  if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:') {
    throw new InvalidValue('must start with postgres://')
  }
  return text
}

/** A password in a flag is unsafe: every user of the host can read the arguments of a process. */
export function hasPassword(databaseUrl: string): boolean {
  try {
    const url = new URL(databaseUrl)
    return url.password !== '' || [...url.searchParams.keys()].some((key) => /^(ssl)?password$/i.test(key))
  } catch {
    return /:[^/@]*@|password=/i.test(databaseUrl)
  }
}

/** 0 for `forever`. */
export function parseRetention(text: string): number {
  return text === 'forever' ? 0 : parseBoundedDuration(text, DAY_MS, 36_500 * DAY_MS)
}

/** `expires_in` is whole seconds (RFC 6749 §5.1). */
export function parseTokenTtl(text: string): number {
  const value = parseBoundedDuration(text, 1_000, 24 * HOUR_MS)
  if (value % 1_000 !== 0) throw new InvalidValue('must be whole seconds')
  return value
}

/** Applies `parse` to each element; a fault names the element. */
export function each<T>(parse: (text: string) => T): (list: readonly string[]) => T[] {
  return (list) =>
    list.map((text, index) => {
      try {
        return parse(text)
      } catch (error) {
        if (error instanceof InvalidValue) throw new InvalidValue(error.message, [index])
        throw error
      }
    })
}

export function parseConfigRate(text: string): Rate {
  const rate = parseRate(text)
  if (rate === undefined) {
    throw new InvalidValue(`${quote(text)} is not a rate: write it as 10/hour (second, minute, hour or day)`)
  }
  return rate
}

/** Splits words at spaces. Characters that are special to a shell require the list form. */
export function parseCommand(given: string | readonly string[]): readonly string[] {
  if (typeof given !== 'string') {
    if (given[0] === undefined || given[0] === '') throw new InvalidValue('does not name a program')
    if (given.some((word) => word.includes('\0'))) throw new InvalidValue('contains a NUL byte')
    return given
  }
  if (/["'`\\$|&;<>()*?~\n\0]/.test(given)) {
    throw new InvalidValue('contains characters that only a shell understands; write it as a list of words')
  }
  const words = given.split(/\s+/).filter((word) => word !== '')
  if (words.length === 0) throw new InvalidValue('does not name a program')
  return words
}

export function parseDomain(text: string): string {
  if (!isHostName(text)) throw new InvalidValue(`${quote(text)} is not a domain such as example.com`)
  return text.toLowerCase()
}

/** The issuer's host, if it is a domain. */
export function defaultSigningDomain(issuer: string): string {
  const host = new URL(issuer).hostname
  return isHostName(host) && host.includes('.') ? host : 'mayfly.local'
}

export function parsePath(text: string): string {
  if (text.includes('\0')) throw new InvalidValue('contains a NUL byte')
  return text
}

/** Of a system: a name, or its number. */
export function parseUser(text: string): string {
  if (!/^(?:[a-z_][a-z0-9_.-]{0,31}|\d{1,10})$/i.test(text))
    throw new InvalidValue(`${quote(text)} is no user: write a name such as mayfly-plugin, or a number`)
  return text
}

/** Those of Mayfly hold its secrets, and those of Node could lift the restrictions of a plugin. */
export function parseVariable(text: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(text))
    throw new InvalidValue(`${quote(text)} is no name of a variable`)
  if (/^(?:MAYFLY|NODE|PLUGIN|CREDDY)_/i.test(text))
    throw new InvalidValue(
      `${quote(text)} is not passed on: plugins get no variables of Mayfly, Node or the protocol`,
    )
  return text
}

export function parseAudience(text: string): string {
  if (!isAudience(text)) {
    throw new InvalidValue(`${quote(text)} is not an audience: a name without spaces, or a URI`)
  }
  return text
}
