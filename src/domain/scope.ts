import { invalid } from './problems.ts'

/** Scopes: segments joined by `:`; the last character of a segment may be `*`. */
export const MAX_SCOPE_LENGTH = 256
export const MAX_SCOPES = 64

const SCOPE = /^(?:[A-Za-z0-9._/@+-]+\*?|\*)(?::(?:[A-Za-z0-9._/@+-]+\*?|\*))*$/

export function isScope(text: string): boolean {
  return text.length <= MAX_SCOPE_LENGTH && SCOPE.test(text)
}

/** Throws `invalid_request`, which names the field, if a scope is malformed or there are too many. */
export function requireScopes(scopes: readonly string[], field = 'scopes'): void {
  if (scopes.length > MAX_SCOPES) throw invalid(`"${field}" contains more than ${MAX_SCOPES} scopes.`)
  for (const scope of scopes) {
    if (!isScope(scope))
      throw invalid(`"${field}" contains a scope that does not have the form backend:resource:permission.`)
  }
}

export function isAdminScope(scope: string): boolean {
  return scope === 'admin' || scope.startsWith('admin:')
}

/**
 * Whether `pattern` grants `wanted`: the pattern has no more segments, and each equals the wanted one or, ending in
 * `*`, is a prefix of it. Only the name grants the first segment `admin`: `*` means everything but admin. Transitive
 * and monotone.
 */
export function covers(pattern: string, wanted: string): boolean {
  const have = pattern.split(':')
  const want = wanted.split(':')
  if (have.length > want.length) return false
  return have.every((segment, index) => coversSegment(segment, want[index] ?? '', index === 0))
}

function coversSegment(pattern: string, wanted: string, first: boolean): boolean {
  if (pattern === wanted) return true
  if (!pattern.endsWith('*')) return false
  if (first && wanted === 'admin') return false
  return wanted.startsWith(pattern.slice(0, -1))
}

export function coversAny(patterns: readonly string[], wanted: string): boolean {
  return patterns.some((pattern) => covers(pattern, wanted))
}

/** Scopes that an agent holds until a time. */
export interface HeldScopes {
  readonly scopes: readonly string[]
  /** Epoch ms; `Infinity`: without end. */
  readonly until: number
}

/** Until when all `wanted` scopes (absolute) are held, each by the part that lasts longest; without parts for ever. */
export function heldUntil(parts: readonly HeldScopes[], wanted: readonly string[]): number {
  if (parts.length === 0) return Number.POSITIVE_INFINITY
  const ends = wanted.map((scope) =>
    Math.max(...parts.filter((part) => coversAny(part.scopes, scope)).map((part) => part.until)),
  )
  return Math.min(...ends)
}

/** The scope that grants the intersection of both: `a:b*` and `a:*:read` meet in `a:b*:read`. */
function meet(left: string, right: string): string | undefined {
  const a = left.split(':')
  const b = right.split(':')
  const both: string[] = []
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) {
    const one = a[index]
    const two = b[index]
    if (one === undefined || two === undefined) both.push(one ?? two ?? '')
    else if (coversSegment(one, two, index === 0)) both.push(two)
    else if (coversSegment(two, one, index === 0)) both.push(one)
    else return undefined
  }
  return both.join(':')
}

/** Whether both grant some common scope. */
export function overlaps(left: string, right: string): boolean {
  return meet(left, right) !== undefined
}

/** Scopes that grant the intersection of both lists, without duplicates. */
export function intersectScopes(left: readonly string[], right: readonly string[]): string[] {
  const both = new Set<string>()
  for (const a of left) {
    for (const b of right) {
      const shared = meet(a, b)
      if (shared !== undefined) both.add(shared)
    }
  }
  return [...both]
}

/** On the backend `github`, both `r:read` and `github:r:read` mean `github:r:read`. */
export function absoluteScope(backend: string, scope: string): string {
  return scope === backend || scope.startsWith(`${backend}:`) ? scope : `${backend}:${scope}`
}

/** The part of a granted scope after the backend's name; `*` if it names only the backend. */
export function scopeHere(backend: string, scope: string): string {
  if (scope === backend) return '*'
  return scope.startsWith(`${backend}:`) ? scope.slice(backend.length + 1) : scope
}

/** The part of an agent's scope that concerns this backend, relative to it; `undefined` if none does. */
export function relativeScope(backend: string, scope: string): string | undefined {
  const colon = scope.indexOf(':')
  const first = colon === -1 ? scope : scope.slice(0, colon)
  if (!coversSegment(first, backend, true)) return undefined
  return colon === -1 ? '*' : scope.slice(colon + 1)
}

/** On a backend `db`, the relative `db:read` (a database of that name) would read as absolute. */
function readableScope(backend: string, relative: string): string {
  return absoluteScope(backend, relative) === relative ? `${backend}:${relative}` : relative
}

/** Whether `held` covers what a credential of this backend was granted, as it is recorded. */
export function coversGranted(backend: string, held: readonly string[], granted: readonly string[]): boolean {
  if (held.every((scope) => relativeScope(backend, scope) === undefined)) return false
  return granted.every((scope) => coversAny(held, absoluteScope(backend, scope)))
}

/** What is known of a backend when a request is decided. */
export interface GrantingBackend {
  readonly name: string
  /** Relative patterns; undefined permits every scope. */
  readonly allowed?: readonly string[] | undefined
  /** Whether it can ever give anything of a scope, relative to it; undefined: only its upstream knows. */
  gives?(scope: string): boolean | undefined
}

/**
 * What a requested scope means, absolute. A scope is relative to the backend, unless it begins with the backend's name.
 * Then it is absolute, except where a resource has this name, too: on a backend `shop` with a database `shop`, `shop:read`
 * means `shop:shop:read` for an agent that holds it. With the name twice in front a scope is always absolute.
 */
export function readScope(backend: GrantingBackend, held: readonly string[], scope: string): string {
  const { name } = backend
  const absolute = absoluteScope(name, scope)
  if (absolute !== scope) return absolute
  const rest = scope.slice(name.length + 1)
  // Is the rest, too, of the absolute form?
  if (absoluteScope(name, rest) === rest) return absolute
  return meansNamesake(backend, held, scope) ? `${name}:${scope}` : scope
}

/** Whether the agent holds, and the backend can give, this scope of the resource that has the backend's name. */
function meansNamesake(
  { name, allowed, gives }: GrantingBackend,
  held: readonly string[],
  scope: string,
): boolean {
  const absolute = `${name}:${scope}`
  if (!isScope(absolute) || !coversAny(held, absolute)) return false
  if (allowed !== undefined && !coversAny(allowed, scope)) return false
  const isNamed = () =>
    held.some((one) => covers(one, absolute) && one.split(':')[1] === name) ||
    allowed?.some((one) => covers(one, scope) && one.split(':')[0] === name) === true
  return gives?.(scope) ?? isNamed()
}

export type GrantDecision =
  | {
      readonly granted: string[]
      /** Of the agent's scopes, those that the backend cannot give; only if none were requested. */
      readonly leftOut: string[]
    }
  | { readonly refused: 'no_scope_here' | 'agent' | 'backend' | 'never_given'; readonly scope?: string }

/**
 * Decides the scopes of one request (decisions.md §3.4). Without `asked` it grants everything that the agent holds on
 * the backend and the backend can give. A requested scope that the agent or the backend does not cover is refused, never
 * dropped. Granted scopes keep the requested form, and defaults are relative to the backend; but both are absolute if a
 * resource has the backend's name, so that `absoluteScope` reads each correctly. An empty list grants nothing.
 */
export function decideGrant(
  backend: GrantingBackend,
  held: readonly string[],
  asked: readonly string[] | undefined,
): GrantDecision {
  const { name, allowed } = backend
  const here = held.filter((scope) => relativeScope(name, scope) !== undefined)
  if (here.length === 0) return { refused: 'no_scope_here' }
  if (asked === undefined) return fillGrant(backend, here)
  const granted: string[] = []
  for (const scope of asked) {
    const absolute = readScope(backend, held, scope)
    if (!coversAny(held, absolute)) return { refused: 'agent', scope }
    const relative = relativeScope(name, absolute) ?? '*'
    if (allowed !== undefined && !coversAny(allowed, relative)) return { refused: 'backend', scope }
    granted.push(absoluteScope(name, scope) === absolute ? scope : absolute)
  }
  return { granted, leftOut: [] }
}

function fillGrant(backend: GrantingBackend, here: readonly string[]): GrantDecision {
  const given = new Set<string>()
  const leftOut: string[] = []
  let isAllowed = false
  for (const scope of here) {
    const parts = allowedParts(backend, scope)
    if (parts.length > 0) isAllowed = true
    const some = parts.filter((part) => backend.gives?.(part) !== false)
    for (const part of some) given.add(readableScope(backend.name, part))
    if (some.length === 0) leftOut.push(scope)
  }
  if (given.size === 0) return { refused: isAllowed ? 'never_given' : 'backend' }
  return { granted: [...given], leftOut }
}

/** What the backend allows of an agent's scope, relative to the backend. */
function allowedParts({ name, allowed }: GrantingBackend, scope: string): string[] {
  const relative = relativeScope(name, scope)
  if (relative === undefined) return []
  return allowed === undefined ? [relative] : intersectScopes([relative], allowed)
}

/** Whether the backend can ever give anything of an agent's scope. */
export function canGive(backend: GrantingBackend, scope: string): boolean {
  return allowedParts(backend, scope).some((part) => backend.gives?.(part) !== false)
}
