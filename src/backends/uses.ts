import type { DatabaseUse, HttpUse, Place, Rule } from '../domain/use.ts'
import { type Tls, tlsOf } from './server-fields.ts'

/** What the uses of the kinds are made of (`domain/use.ts`). */

export const READING = ['GET', 'HEAD']
export const CHANGING = ['POST', 'PUT', 'PATCH', 'DELETE']
export const ALL = [...READING, ...CHANGING]

/** One rule for each path. */
export function rules(
  methods: readonly string[],
  paths: readonly string[],
  more: Pick<Rule, 'slashes' | 'caseless'> = {},
): readonly Rule[] {
  return paths.map((path) => ({ methods, path, ...more }))
}

/**
 * A name within a pattern of a path, as one segment or a part of one; a slash becomes `%2F`, for rules with `slashes`. A `*`
 * stays one, as at the end of a scope. What a pattern cannot say becomes `*`: no upstream of ours has such names.
 */
export function segment(name: string): string {
  const plain = name.replace(/[?#%\\\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, '*').replace(/\*+/g, '*')
  const text = plain.replaceAll('/', '%2F')
  const isOdd = text === '' || text.split('%2F').some((part) => /^\.{1,2}$/.test(part))
  return isOdd || text.split('*').length > MOST_STARS ? '*' : text
}

/** Of one segment; a name has at most all but one of them, so that a template may have one more. */
const MOST_STARS = 4

export const AUTHORIZATION: Place = { in: 'header', name: 'authorization' }
/** The secret as the password, or as the name of a user without one. */
export const BASIC: Place = { in: 'basic' }

export interface Site {
  /** The address in the configuration. A path in it is part of every pattern. */
  readonly base: string
  readonly local: boolean
  readonly ca?: string | undefined
}

interface HttpParts {
  readonly places: readonly Place[]
  /** Paths are below that of the address. */
  readonly allow: readonly Rule[]
  readonly deny?: readonly Rule[]
}

/** None for an address that is no URL, or would show the secret on its way: such a backend does not open. */
export function httpUse(name: string, { base, local, ca }: Site, parts: HttpParts): readonly HttpUse[] {
  if (!URL.canParse(base)) return []
  const { protocol, origin, pathname } = new URL(base)
  if (protocol !== 'https:' && !(protocol === 'http:' && local)) return []
  const before = pathname
    .split('/')
    .filter(Boolean)
    .map(decoded)
    .map((part) => segment(part.replaceAll('/', '*')))
    .join('/')
  const below = (all: readonly Rule[]) =>
    before === '' ? all : all.map((rule) => ({ ...rule, path: `/${before}${rule.path}` }))
  return [
    {
      protocol: 'http',
      name,
      origin,
      local,
      ...(ca === undefined ? {} : { ca }),
      places: parts.places,
      allow: below(parts.allow),
      deny: below(parts.deny ?? []),
    },
  ]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Smart HTTP and LFS of these repositories (gitprotocol-http; git-lfs, "Git LFS API"). `paths`: without `.git` at the end.
 * `info/refs` is the same path for both: what may be pushed is decided where the pack is sent.
 */
export function gitRules(
  paths: readonly string[],
  canPush: boolean,
  more: Pick<Rule, 'slashes' | 'caseless'> = {},
): readonly Rule[] {
  const both = paths.flatMap((path) => [`${path}.git`, path])
  return both.flatMap((path) => [
    ...rules(READING, [`${path}/info/refs`], more),
    ...rules(['POST'], [`${path}/git-upload-pack`, `${path}/info/lfs/objects/batch`], more),
    ...(canPush ? rules(['POST'], [`${path}/git-receive-pack`, `${path}/info/lfs/locks/**`], more) : []),
  ])
}

interface ServerSettings {
  readonly host: string
  readonly port: number
  readonly local: boolean
  readonly tls?: Tls
  readonly ca?: string
  readonly connect_host?: string
  readonly connect_port?: number
}

/** As agents connect: the proxy is beside them. */
export function databaseUse(
  protocol: DatabaseUse['protocol'],
  settings: ServerSettings,
  databases?: readonly string[],
): readonly DatabaseUse[] {
  const { host, port, local, ca, connect_host: otherHost, connect_port: otherPort } = settings
  return [
    {
      protocol,
      name: 'database',
      host: otherHost ?? host,
      port: otherPort ?? port,
      local,
      tls: tlsOf(settings),
      ...(ca === undefined ? {} : { ca }),
      ...(databases === undefined ? {} : { databases }),
    },
  ]
}
