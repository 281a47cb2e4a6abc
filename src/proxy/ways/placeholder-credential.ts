import type { IssuedCredential } from '../../client/wire.ts'
import { type SplitCredential, splitCredential } from '../../domain/secret-fields.ts'
import type { DatabaseUse, Use } from '../../domain/use.ts'
import type { Site } from '../types.ts'
import { type ComposeWith, composeDockerConfig, composeKubeconfig, composeUrl } from './compose.ts'

/** Where the child reaches one database. */
export interface ReachedDatabase {
  readonly use: DatabaseUse
  /** A directory with a socket, or an address. */
  readonly host: string
  readonly port: number
  /** What else stands in the credential in place of its own fields. */
  readonly fields?: Readonly<Record<string, string | number>>
}

export interface Ways {
  readonly uses: readonly Use[]
  /** By field; `''` is the one value. */
  readonly placeholders: ReadonlyMap<string, string>
  /** Of this credential. */
  readonly sites: readonly Site[]
  readonly databases: readonly ReachedDatabase[]
  /** PEM of the authority of the run, for what is given an https address. */
  readonly certificate: string
}

type Fields = Readonly<Record<string, string | number>>

/**
 * The credential that the child gets: each secret is its placeholder, and each address leads to the proxy. A field that cannot be
 * made without a secret is missing.
 */
export function placeholderCredential(
  { uses: _, ...issued }: IssuedCredential & { readonly uses?: unknown },
  ways: Ways,
): IssuedCredential & { readonly token: string } {
  const { token, fields } = issued
  const split = splitCredential({ token, fields }, ways.uses)
  const one = ways.placeholders.get('')
  if (fields === undefined) return { ...issued, token: one ?? '' }
  const made = fieldsFor(fields, split, ways)
  return { ...issued, token: split.secrets.has('') ? (one ?? '') : JSON.stringify(made), fields: made }
}

function fieldsFor(fields: Fields, split: SplitCredential, ways: Ways): Fields {
  const [database] = ways.databases
  const made: Record<string, string | number> = {}
  for (const [name, given] of Object.entries(fields)) {
    const value = replaced(name, given, split, ways)
    const own = database === undefined ? undefined : ofDatabase(name, database)
    if (own !== undefined) made[name] = own
    else if (value !== undefined) made[name] = value
  }
  return made
}

/** A secret has its placeholder whatever the database says: it asks for the same. */
function ofDatabase(name: string, { host, port, fields = {} }: ReachedDatabase): string | number | undefined {
  if (Object.hasOwn(fields, name)) return fields[name]
  if (name === 'host' || name === 'hostname') return host
  if (name === 'port') return port
  return name === 'sslmode' ? 'disable' : undefined
}

function replaced(name: string, given: string | number, split: SplitCredential, ways: Ways) {
  if (split.secrets.has(name)) return ways.placeholders.get(name)
  const composed = split.composed.get(name)
  if (composed !== undefined) return compose(name, composed, split, ways)
  return typeof given === 'string' ? openText(name, given, ways) : given
}

/** An address of an upstream becomes that of its site. Beside an https site, an authority is the run's. */
function openText(name: string, value: string, { sites, certificate }: Ways): string {
  const site = siteOf(value, sites)
  if (site !== undefined) return site
  const hasTls = sites.some(({ url }) => url.startsWith('https:'))
  return name === 'ca' && hasTls ? certificate : value
}

function siteOf(value: string, sites: readonly Site[]): string | undefined {
  if (!/^https?:/i.test(value) || !URL.canParse(value)) return undefined
  const { origin, pathname } = new URL(value)
  const site = sites.find(({ use }) => new URL(use.origin).origin === origin)
  return site === undefined ? undefined : `${site.url}${pathname === '/' ? '' : pathname}`
}

function compose(name: string, value: string, split: SplitCredential, ways: Ways): string | undefined {
  const { sites, databases, placeholders } = ways
  const bySecret = new Map(
    [...split.secrets].map(([field, secret]) => [secret, placeholders.get(field)] as const),
  )
  const open = new Set(split.open.values())
  const parts: ComposeWith = {
    placeholderOf: (secret) => bySecret.get(secret),
    isOpen: (text) => open.has(text),
  }
  if (name === 'docker_config') return composeDockerConfig(value, parts)
  if (name !== 'kubeconfig') return composeUrl(value, parts, databases[0])
  const token = placeholders.get('token')
  const site = sites.find(({ url }) => url.startsWith('https:'))
  const server = site?.url ?? split.open.get('server')
  if (token === undefined || server === undefined) return undefined
  return composeKubeconfig({
    ...{ server, token, certificate: ways.certificate },
    namespace: split.open.get('namespace'),
  })
}
