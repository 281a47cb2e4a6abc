import { readOrigin } from '../../domain/network/authority.ts'
import type { HttpUse, Rule } from '../../domain/use.ts'
import { matchesPath, type PathPattern, readPathPattern } from '../../domain/use-pattern.ts'
import { useFault } from '../../domain/use-rules.ts'
import type { Known } from './asked.ts'
import type { Path } from './target.ts'

/** A use whose rules are ready to be compared. */
export interface CompiledUse {
  readonly known: Known
  /** `host:port`; with `wildcard`, what stands behind the first labels: `.amazonaws.com:443`. */
  readonly authority: string
  readonly scheme: 'https' | 'http'
  readonly wildcard: boolean
  /** Nothing is put into its requests: it is plain HTTP, and not local. */
  readonly plain: boolean
  readonly rules: Rules
}

interface Rules {
  readonly namedDeny: readonly Compiled[]
  readonly namedAllow: readonly Compiled[]
  readonly deny: readonly Compiled[]
  readonly allow: readonly Compiled[]
}

interface Compiled {
  /** Null: every one. */
  readonly methods: readonly string[] | null
  readonly pattern: PathPattern
  readonly slashes: boolean
  /** The pattern is in lower case, as the path is to be. */
  readonly caseless: boolean
  /** For denying: in lower case, each slash a border. */
  readonly folded: PathPattern
}

/** Null: its origin cannot be read, so it is nowhere. Where anything else of it is wrong, it allows nothing. */
export function compileUse(known: Known): CompiledUse | null {
  const { use } = known
  const origin = readOrigin(use.origin)
  if (origin === undefined) return null
  const { scheme, wildcard, host, port } = origin
  return {
    known,
    scheme,
    wildcard,
    authority: `${wildcard ? '.' : ''}${host}:${port}`,
    plain: scheme === 'http' && !use.local,
    rules: useFault(use) === undefined ? compileRules(use) : NOTHING,
  }
}

const NOTHING: Rules = { namedDeny: [], namedAllow: [], deny: [], allow: [] }

function compileRules({ allow, deny }: HttpUse): Rules {
  const some = (rules: readonly Rule[], named: boolean) =>
    rules.filter((rule) => (rule.named === true) === named).map(compileRule)
  return {
    namedDeny: some(deny, true),
    namedAllow: some(allow, true),
    deny: some(deny, false),
    allow: some(allow, false),
  }
}

function compileRule({ methods, path, slashes = false, caseless = false }: Rule): Compiled {
  // Paths are compared as the bytes that are sent.
  const bytes = Buffer.from(path).toString('latin1')
  const read = readPathPattern(caseless ? bytes.toLowerCase() : bytes, slashes)
  if (typeof read === 'string') throw new Error(`a pattern ${read}`)
  const those = methods.includes('*') ? null : methods
  return { methods: those, pattern: read, slashes, caseless, folded: fold(read) }
}

function fold({ segments, open }: PathPattern): PathPattern {
  const folded = segments.flatMap((segment) => {
    // A slash of the pattern is a border, as it may be upstream.
    const parts = segment.join('*').toLowerCase().split('/')
    return parts.map((part) => part.split('*') as [string, ...string[]])
  })
  return { segments: folded.filter((segment) => segment.length > 1 || segment[0] !== ''), open }
}

export type Outcome = 'allowed' | 'denied' | 'method_not_allowed' | 'slash_not_allowed' | 'path_not_allowed'

/** The rules of an administrator come first, and of each pair what denies. What no rule names is not allowed. */
export function judge({ rules }: CompiledUse, method: string, path: Path): Outcome {
  const readings = denyReadings(path)
  if (isDenied(rules.namedDeny, method, readings)) return 'denied'
  const named = isAllowed(rules.namedAllow, method, path)
  if (named === 'allowed') return named
  if (isDenied(rules.deny, method, readings)) return 'denied'
  const outcome = isAllowed(rules.allow, method, path)
  return outcome === 'path_not_allowed' ? named : outcome
}

function isAllowed(rules: readonly Compiled[], method: string, path: Path): Outcome {
  let outcome: Outcome = 'path_not_allowed'
  for (const { methods, pattern, slashes, caseless } of rules) {
    const segments = caseless ? path.segments.map((segment) => segment.toLowerCase()) : path.segments
    if (!matchesPath(pattern, segments)) continue
    if (methods !== null && !methods.includes(method)) {
      if (outcome === 'path_not_allowed') outcome = 'method_not_allowed'
    } else if (path.slashes && !slashes) outcome = 'slash_not_allowed'
    else return 'allowed'
  }
  return outcome
}

/**
 * The ways in which an upstream may read the path: letters of either case are one, a slash at the end and parameters (`;a=b`) are
 * nothing, several slashes are one, an escaped one is a slash, and a format at the end (`.json`, as Rails and Grape have it) is
 * nothing. What denies a request denies it in each.
 */
function denyReadings({ segments, slashes }: Path): readonly (readonly string[])[] {
  const lower = segments.map((segment) => segment.toLowerCase())
  const apart = slashes ? [lower.flatMap((segment) => segment.split('/')).filter((one) => one !== '')] : []
  return [lower, ...apart].flatMap((reading) => {
    const cut = reading.map(withoutParameters)
    const isCut = cut.some((segment, index) => segment !== reading[index])
    // The path as it is, too: without its parameters a segment may be empty, which no star stands for, or be nothing at all.
    const all = isCut ? [reading, cut, cut.filter((segment) => segment !== '')] : [reading]
    return all.map(withoutLastSlash).flatMap((one) => [one, ...withoutFormat(one)])
  })
}

/** None where there is no format. */
function withoutFormat(segments: readonly string[]): readonly (readonly string[])[] {
  const last = segments.at(-1) ?? ''
  const dot = last.lastIndexOf('.')
  return dot > 0 ? [[...segments.slice(0, -1), last.slice(0, dot)]] : []
}

function withoutLastSlash(segments: readonly string[]): readonly string[] {
  return segments.at(-1) === '' ? segments.slice(0, -1) : segments
}

/** Also what follows an escaped `?` or `#`, which some servers decode too early. */
function withoutParameters(segment: string): string {
  const at = segment.search(/[;?#]/)
  return at === -1 ? segment : segment.slice(0, at)
}

function isDenied(
  rules: readonly Compiled[],
  method: string,
  readings: readonly (readonly string[])[],
): boolean {
  return rules.some(
    ({ methods, folded }) =>
      (methods === null || methods.includes(method)) &&
      readings.some((segments) => matchesPath(folded, segments)),
  )
}
