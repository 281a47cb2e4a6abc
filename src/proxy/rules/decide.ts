import { authorityText, hostHeader, readAuthority } from '../../domain/network/authority.ts'
import { isMethod } from '../../domain/use-rules.ts'
import type { Held } from '../types.ts'
import type { Asked, Known, Placeholder, Refused, Verdict } from './asked.ts'
import { type CompiledUse, compileUse, judge, type Outcome } from './compiled-use.ts'
import { expectedAuthorities, hostFault, overridesRequest, readHeaders, wrapsReply } from './headers.ts'
import { createPlaceholderSearch, type PlaceholderSearch } from './placeholders.ts'
import { findSpots, type Sought } from './places.ts'
import { readSignature } from './signature.ts'
import { type Path, readParameters, readPath, readTarget, type Target } from './target.ts'
import { forwardVerdict, injectBodyVerdict, injectVerdict, isOnlyIn, signVerdict } from './verdicts.ts'

export interface Rules {
  decide(asked: Asked): Verdict
  /** For every placeholder of the run, those of databases, too. */
  readonly search: PlaceholderSearch
  /** Whether a credential of the run is for this canonical `host:port`. */
  isKnown(scheme: 'https' | 'http', authority: string): boolean
}

/** Made anew when the run holds others; a renewed credential is not another. */
export function createRules(held: readonly Held[]): Rules {
  const search = createPlaceholderSearch(held)
  const usesAt = usesByAuthority(held)
  return {
    search,
    isKnown: (scheme, authority) => usesAt(scheme, authority).length > 0,
    decide: (asked) => decide(asked, search, usesAt),
  }
}

type UsesAt = (scheme: string, authority: string) => readonly CompiledUse[]

function usesByAuthority(helds: readonly Held[]): UsesAt {
  const uses = helds
    .flatMap((held) => held.uses.map((use) => (use.protocol === 'http' ? compileUse({ held, use }) : null)))
    .filter((use) => use !== null)
  const wildcards = uses.filter(({ wildcard }) => wildcard)
  const exact = Map.groupBy(
    uses.filter(({ wildcard }) => !wildcard),
    ({ scheme, authority }) => `${scheme}://${authority}`,
  )
  return (scheme, authority) => {
    const found = exact.get(`${scheme}://${authority}`) ?? []
    if (wildcards.length === 0) return found
    const wide = wildcards.filter(
      (use) =>
        use.scheme === scheme && authority.endsWith(use.authority) && authority.length > use.authority.length,
    )
    return [...found, ...wide]
  }
}

function decide(asked: Asked, search: PlaceholderSearch, usesAt: UsesAt): Verdict {
  const authority = readAuthority(asked.authority, asked.scheme)
  if (authority === undefined) return refuse('bad_host')
  const canonical = authorityText(authority)
  const uses = usesAt(asked.scheme, canonical)
  // First, so that a malformed request with a placeholder in it is an alarm, too.
  const found = search.inText(textOf(asked))
  const stray = found.find((placeholder) => !uses.some(({ known }) => known.held === placeholder.held))
  if (stray !== undefined) return refuse('elsewhere', { misused: stray, held: stray.held })
  const read = readHeaders(asked)
  if (typeof read === 'string') return refuse(read)
  const expected = expectedAuthorities({ ...asked, authority: canonical })
  const fault = hostFault(asked, read, expected)
  if (fault !== undefined) return refuse(fault)
  if (!isMethod(asked.method) || asked.method === 'PRI') return refuse('bad_method')
  const target = readTarget(asked, expected)
  if (target === null) return refuse('bad_target')
  const sought = { asked, read, target, search, found, host: hostHeader(authority, asked.scheme) }
  return uses.length === 0 ? forwardVerdict(sought, undefined) : decideAtBackend(sought, uses)
}

/** Everything of a head in which a placeholder may stand. */
function textOf({ target, headers, http2 }: Asked): string {
  let text = `${target}\n`
  for (const [name, value] of headers) text += `${name}: ${value}\n`
  return http2?.authority === undefined ? text : `${text}${http2.authority}`
}

function decideAtBackend(sought: Sought, uses: readonly CompiledUse[]): Verdict {
  const { asked, read, target, found } = sought
  const helds = new Set(found.map(({ held }) => held))
  if (helds.size > 1) return refuse('two_credentials', { held: found[0]?.held })
  const path = readPath(target.path)
  if (path === null) return refuse('bad_path', { held: found[0]?.held })
  if (overridesRequest(read) || overridesMethod(target))
    return refuse('method_override', { held: found[0]?.held })
  if (wrapsReply(read)) return refuse('denied', { held: found[0]?.held })
  const [held] = helds
  const own =
    held === undefined ? siteFirst(uses, asked.site) : uses.filter(({ known }) => known.held === held)
  return decideAmong(sought, own, path)
}

/** Rails and others read the method from there. */
function overridesMethod({ query }: Target): boolean {
  // Escapes could hide it.
  if (query === null || (!query.includes('%') && !/method/i.test(query))) return false
  return readParameters(query).some(({ name }) => /^(?:_method|x-http-method-override)$/i.test(name))
}

/** At a base URL its own use comes first; the others of the authority remain, as a backend may have several there. */
function siteFirst(uses: readonly CompiledUse[], site: Known | undefined): readonly CompiledUse[] {
  if (site === undefined) return uses
  const isSites = ({ known }: CompiledUse) => known.held === site.held && known.use.name === site.use.name
  return [...uses.filter(isSites), ...uses.filter((use) => !isSites(use))]
}

/** The first use that allows the request decides; if none does, the refusal that says most. */
function decideAmong(sought: Sought, uses: readonly CompiledUse[], path: Path): Verdict {
  const outcomes = new Map<CompiledUse, Outcome>()
  for (const use of uses)
    outcomes.set(use, use.plain ? 'path_not_allowed' : judge(use, sought.asked.method, path))
  const allowed = uses.filter((use) => outcomes.get(use) === 'allowed').map(({ known }) => known)
  const held = uses[0]?.known.held
  if (allowed.length === 0) {
    if (uses.every(({ plain }) => plain)) return refuse('plain_http', { held })
    const order: Outcome[] = ['denied', 'method_not_allowed', 'slash_not_allowed', 'path_not_allowed']
    const reason = order.find((outcome) => [...outcomes.values()].includes(outcome))
    return refuse(reason === undefined || reason === 'allowed' ? 'path_not_allowed' : reason, { held })
  }
  if (sought.found.length === 0) {
    return injectBodyVerdict(sought, allowed) ?? forwardVerdict(sought, allowed[0])
  }
  let refused: Refused | undefined
  for (const known of allowed) {
    const verdict = place(sought, known)
    if (verdict.kind !== 'refuse') return verdict
    // That a signature is wrong says more than that it is misplaced.
    if (refused === undefined || verdict.reason !== 'misplaced') refused = verdict
  }
  return refused ?? refuse('misplaced', { held })
}

/** Every placeholder in the request must stand where this use permits it. */
function place(sought: Sought, known: Known): Verdict {
  const [first, ...more] = sought.found
  if (first === undefined) return forwardVerdict(sought, known)
  for (const one of known.use.places) {
    if (one.in !== 'sigv4') continue
    const signature = readSignature(one, sought)
    if (typeof signature === 'string') return refuse(signature, { held: known.held })
    if (signature !== undefined && isOnlyIn(sought, signature.headers, signature.target)) {
      return signVerdict(sought, known, one, signature)
    }
  }
  const spots = findSpots(known.use, sought)
  const headers = new Map(spots.headers.map(({ index, rest }) => [index, rest]))
  if (!isOnlyIn(sought, headers, spots.target)) return misplaced(known, first)
  return injectVerdict(sought, known, spots, [first, ...more])
}

function misplaced({ held }: Known, misused: Placeholder): Refused {
  return refuse('misplaced', { held, misused })
}

function refuse(
  reason: Refused['reason'],
  { held, misused }: { held?: Held | undefined; misused?: Placeholder } = {},
): Refused {
  return { kind: 'refuse', reason, ...(held && { held }), ...(misused && { misused }) }
}
