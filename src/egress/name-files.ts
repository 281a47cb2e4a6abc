import { isIP } from 'node:net'

/** The files that say how this machine resolves names, from their text. */

/** The addresses of a name in `/etc/hosts` (hosts(5)), in the order of the file. */
export function addressesInHosts(text: string, name: string): string[] {
  const wanted = name.toLowerCase()
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*$/, '').trim().split(/\s+/)
    return isIP(address) !== 0 && names.some((one) => one.toLowerCase() === wanted) ? [address] : []
  })
}

/** What `/etc/resolv.conf` says of incomplete names (resolv.conf(5)). */
export interface Search {
  readonly domains: readonly string[]
  /** A name with so many dots is tried as it is before the domains. */
  readonly ndots: number
}

const MOST_NDOTS = 15

/** Without a list, the domain of `ownName`, the name of this machine, is searched. */
export function searchOf(text: string, ownName: string): Search {
  const [, ...ownDomain] = ownName.split('.')
  let domains = ownDomain.length === 0 ? [] : [ownDomain.join('.')]
  let ndots = 1
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/)
    // The last line counts.
    if (keyword === 'domain') domains = values.slice(0, 1)
    if (keyword === 'search') domains = values
    if (keyword !== 'options') continue
    for (const value of values) {
      const given = /^ndots:(\d{1,3})$/.exec(value)?.[1]
      if (given !== undefined) ndots = Math.min(MOST_NDOTS, Number(given))
    }
  }
  return { domains: domains.map((domain) => domain.replace(/\.$/, '')), ndots }
}

/** The complete names to ask for, in the order of the C library. */
export function candidatesOf(name: string, { domains, ndots }: Search): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)]
  const searched = domains.map((domain) => (domain === '' ? name : `${name}.${domain}`))
  const isComplete = name.split('.').length - 1 >= ndots
  return [...new Set(isComplete ? [name, ...searched] : [...searched, name])]
}

export interface Sources {
  readonly dns: boolean
  /** Sources that only the C library can ask, such as mDNS or the name of this machine. */
  readonly others: boolean
}

/** The line `hosts` of `/etc/nsswitch.conf` (nsswitch.conf(5)). Without one: `/etc/hosts` and DNS. */
export function sourcesOf(text: string): Sources {
  const line = /^[ \t]*hosts:([^#\n]*)/m.exec(text)?.[1]
  if (line === undefined) return { dns: true, others: false }
  const sources = line
    .replace(/\[[^\]]*\]/g, ' ')
    .trim()
    .split(/\s+/)
  return {
    dns: sources.includes('dns'),
    others: sources.some((source) => !['files', 'dns', ''].includes(source)),
  }
}
