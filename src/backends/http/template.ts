import { misconfigured, unsupported } from '../../domain/backend-error.ts'

/** Templates: text with `{name}`, which becomes the value of a variable. A value never becomes syntax. */

export type Vars = Readonly<Record<string, unknown>>

const VARIABLE = /\{([a-z][a-z0-9_]*)\}/g
const WHOLE = /^\{([a-z][a-z0-9_]*)\}$/

export const namesIn = (text: string) => [...text.matchAll(VARIABLE)].map(([, name = '']) => name)

export const hasStrayBrace = (text: string) => /[{}]/.test(text.replace(VARIABLE, ''))

export const isPointer = (text: string) => text.startsWith('/')

/** Throws `BackendError` for a variable without a single value. `write` makes a value fit its place. */
export function fillText(text: string, vars: Vars, write = (value: string) => value): string {
  return text.replace(VARIABLE, (_, name: string) => {
    const value = vars[name]
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
      throw misconfigured(`The recipe needs "${name}", which has no single value here.`)
    const plain = String(value)
    if (!plain.isWellFormed()) throw unfit('a text that is not Unicode')
    return write(plain)
  })
}

const unfit = (what: string) =>
  unsupported(`A scope or a name cannot be sent to this upstream: it would become ${what}.`)

/** The path of a URL: a value stays within its segment (RFC 3986 §3.3), and no segment becomes `.` or `..` (§5.2.4). */
export function fillPath(template: string, vars: Vars): string {
  const path = fillText(template, vars, encodeURIComponent)
  const segments = path.split('/').slice(1)
  const isOdd = (one: string, index: number) =>
    /^\.\.?$/.test(one) || (one === '' && (index < segments.length - 1 || !template.endsWith('/')))
  if (segments.some(isOdd)) throw unfit('another path')
  return path
}

/** Header text without control characters (RFC 9110 §5.5), in ASCII. */
export function fillHeader(template: string, vars: Vars): string {
  const value = fillText(template, vars)
  if (!/^[\x20-\x7e]*$/.test(value)) throw unfit('a header with control characters')
  return value
}

/** Pairs of a query or form. One that is a single variable without a value is left out. */
export function fillPairs(pairs: Readonly<Record<string, string>>, vars: Vars): URLSearchParams {
  const filled = new URLSearchParams()
  for (const [name, template] of Object.entries(pairs)) {
    const whole = WHOLE.exec(template)?.[1]
    if (whole === undefined || vars[whole] !== undefined) filled.append(name, fillText(template, vars))
  }
  return filled
}

/** A JSON value with its strings and keys filled in. `undefined`: a single variable without a value. */
export function fillJson(template: unknown, vars: Vars, scopes: readonly Vars[]): unknown {
  const fill = (inner: unknown) => fillJson(inner, vars, scopes)
  if (typeof template === 'string') {
    const whole = WHOLE.exec(template)?.[1]
    return whole === undefined ? fillText(template, vars) : vars[whole]
  }
  if (Array.isArray(template)) return template.map(fill).filter((one) => one !== undefined)
  if (typeof template !== 'object' || template === null) return template
  if ('$each' in template) return fillEach(template as EachTemplate, vars, scopes)
  const entries = Object.entries(template)
    .map(([key, inner]) => [fillText(key, vars), fill(inner)] as const)
    .filter(([, value]) => value !== undefined)
  if (new Set(entries.map(([key]) => key)).size < entries.length) throw unfit('a key that is there already')
  return Object.fromEntries(entries)
}

interface EachTemplate {
  readonly $each: unknown
  readonly $join?: string
}

function fillEach({ $each, $join }: EachTemplate, vars: Vars, scopes: readonly Vars[]): unknown {
  const filled = scopes.map((scope) => fillJson($each, { ...vars, ...scope }, []))
  if ($join === undefined) return filled
  // A separator inside a value would make two of it.
  if ($join !== '' && filled.some((one) => String(one).includes($join))) throw unfit('two values')
  return filled.join($join)
}

/** The value at a JSON Pointer (RFC 6901 §4), `undefined` if there is none. */
export function pointAt(document: unknown, pointer: string): unknown {
  let at = document
  for (const raw of pointer.split('/').slice(1)) {
    const step = raw.replaceAll('~1', '/').replaceAll('~0', '~')
    const isStep = Array.isArray(at)
      ? /^(?:0|[1-9]\d{0,8})$/.test(step)
      : typeof at === 'object' && at !== null
    if (!isStep || !Object.hasOwn(at as object, step)) return undefined
    at = (at as Readonly<Record<string, unknown>>)[step]
  }
  return at
}
