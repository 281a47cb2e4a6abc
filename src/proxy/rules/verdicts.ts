import type { Place } from '../../domain/use.ts'
import type { Live } from '../types.ts'
import type {
  Applied,
  Inject,
  InjectBody,
  InjectIntoBody,
  Known,
  Placeholder,
  Refused,
  Sign,
  Verdict,
} from './asked.ts'
import { type BodyKind, bodyKind, bodyPlaces, findInBody } from './body.ts'
import { type Forwarding, forwardedHeaders } from './headers.ts'
import { oneHeader, type Sought, type Spots } from './places.ts'
import { type Range, replaceRanges } from './ranges.ts'
import type { Signature } from './signature.ts'
import { templateOf } from './template.ts'

/** Whether no placeholder stands outside of these headers (by index, with what else is in them) and ranges of the target. */
export function isOnlyIn(
  { asked, target, search }: Sought,
  headers: ReadonlyMap<number, string>,
  ranges: readonly Range[],
): boolean {
  let rest = `${replaceRanges(originForm(target), ranges, () => '\n')}\n${asked.http2?.authority}\n`
  for (const [index, [name, value]] of asked.headers.entries())
    rest += `${name}: ${headers.get(index) ?? value}\n`
  return search.inText(rest).length === 0
}

function originForm({ path, query }: Sought['target']): string {
  return query === null ? path : `${path}?${query}`
}

export function forwardVerdict(sought: Sought, known: Known | undefined): Verdict {
  return {
    kind: 'forward',
    held: known?.held,
    use: known?.use,
    template: known === undefined ? null : templateOf(sought.target.path),
    upgrade: sought.read.upgrade,
    // An upstream may repeat what others sent it before.
    clean: () => cleaned(sought, { masked: known !== undefined }),
  }
}

function cleaned(sought: Sought, forwarding: Omit<Forwarding, 'host'>): Applied {
  const { asked, read, target, host } = sought
  return { target: originForm(target), headers: forwardedHeaders(asked, read, { host, ...forwarding }) }
}

export function signVerdict(
  sought: Sought,
  { held, use }: Known,
  place: Place & { readonly in: 'sigv4' },
  { placeholder, service }: Signature,
): Sign {
  return {
    ...{ kind: 'sign', held, use, place, placeholder, service },
    template: templateOf(sought.target.path),
    upgrade: sought.read.upgrade,
    clean: () => cleaned(sought, { masked: true }),
  }
}

export function injectVerdict(
  sought: Sought,
  { held, use }: Known,
  spots: Spots,
  placeholders: readonly [Placeholder, ...Placeholder[]],
): Inject {
  const covered = spots.target.find(({ inPath }) => inPath)
  return {
    ...{ kind: 'inject', held, use, places: spots.places, placeholders },
    template: templateOf(sought.target.path, covered),
    upgrade: sought.read.upgrade,
    apply: (live) => inject(sought, spots, live),
  }
}

function inject(sought: Sought, spots: Spots, live: Live): Applied | Refused {
  const values = new Map<number, string>()
  for (const { index, write } of spots.headers) {
    const value = write(live)
    if (value === null) return unfit(sought)
    values.set(index, value)
  }
  const written = new Map(spots.target.map((spot) => [spot, spot.write(live)]))
  if ([...written.values()].includes(null)) return unfit(sought)
  const { headers, target } = cleaned(sought, { masked: true, values })
  return { headers, target: replaceRanges(target, spots.target, (spot) => written.get(spot) ?? '') }
}

function unfit({ found: [placeholder] }: Sought): Refused {
  return { kind: 'refuse', reason: 'unfit_secret', ...(placeholder && { held: placeholder.held }) }
}

/** Undefined: no use permits a placeholder in this body. */
export function injectBodyVerdict(
  sought: Sought,
  allowed: readonly Known[],
): InjectBody | Refused | undefined {
  const { read, target } = sought
  if (!read.hasBody || read.upgrade !== null) return undefined
  const kind = bodyKind(oneHeader(sought, 'content-type')?.value)
  const candidates = allowed.filter(({ use }) => bodyPlaces(use).length > 0)
  const [known] = candidates
  if (kind === undefined || known === undefined) return undefined
  // Its placeholder would go on, and the login fail without a word of why.
  if (isEncoded(sought)) return { kind: 'refuse', reason: 'bad_encoding', held: known.held }
  const maxBytes = Math.max(
    ...candidates.flatMap(({ use }) => bodyPlaces(use).map((place) => place.maxBytes)),
  )
  return {
    ...{ kind: 'inject_body', held: known.held, use: known.use, maxBytes },
    template: templateOf(target.path),
    upgrade: null,
    readBody: (body) => readBody(sought, body, kind, candidates),
    clean: () => cleaned(sought, { masked: true }),
  }
}

function isEncoded({ asked, read }: Sought): boolean {
  return asked.headers.some(
    ([, value], index) => read.names[index] === 'content-encoding' && !/^(?:identity)?$/i.test(value.trim()),
  )
}

function readBody(
  sought: Sought,
  body: Buffer,
  kind: BodyKind,
  candidates: readonly Known[],
): InjectIntoBody | Refused | null {
  const found = findInBody(body, kind, candidates, sought.search)
  if (found === null) return null
  const { placeholder } = found
  if ('reason' in found) {
    const misused = found.reason === 'misplaced' ? { misused: placeholder } : {}
    return { kind: 'refuse', reason: found.reason, held: placeholder.held, ...misused }
  }
  const { known, write } = found
  return {
    ...known,
    placeholder,
    apply: (live) => {
      const written = write(live)
      if (written === null) return { kind: 'refuse', reason: 'unfit_secret', held: known.held }
      return { ...cleaned(sought, { masked: true, contentLength: written.length }), body: written }
    },
  }
}
