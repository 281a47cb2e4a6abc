import picomatch from 'picomatch'
import type { Static, TSchema } from 'typebox'
import { Check } from 'typebox/value'
import { isAudience } from '../domain/audience.ts'
import { parseDuration } from '../domain/duration.ts'
import { InvalidValue, quote } from '../domain/fault.ts'
import { isObject } from '../domain/formats/json.ts'
import type { CompiledPolicy } from '../domain/policy.ts'
import { parseRate, type Rate } from '../domain/policy.ts'
import { isAdminScope, isScope } from '../domain/scope.ts'
import { PolicySchema } from './policy-schema.ts'

export type PolicyEntry = Static<typeof PolicySchema>

/** A compiled policy, with the pattern that the admin API shows. */
export interface ConfiguredPolicy extends CompiledPolicy {
  readonly pattern: string
}

/** No parentheses, slashes or escapes: picomatch would pass regular expressions through. */
const PATTERN = /^[A-Za-z0-9._*?{},[\]^-]+$/
const POLICY_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const MAX_STARS = 4

/**
 * Compiles a glob over agent names, ignoring case because names do (otherwise `PROD-x` would slip past `prod-*`).
 * Stars are limited because an anonymous caller chooses the name, and each star multiplies the work by the length of
 * the name. Throws `InvalidValue` with the reason.
 */
export function compilePattern(pattern: string): (name: string) => boolean {
  if (!PATTERN.test(pattern)) {
    throw new InvalidValue(`${quote(pattern)} may only contain letters, digits and . _ - * ? [ ] ^ { } ,`)
  }
  if ((pattern.match(/\*+/g)?.length ?? 0) > MAX_STARS) {
    throw new InvalidValue(`${quote(pattern)} contains more than ${MAX_STARS} "*"`)
  }
  const opened = pattern.split('{').length
  if (opened !== pattern.split('}').length) throw new InvalidValue(`${quote(pattern)} has an unmatched brace`)
  try {
    const matches = picomatch(pattern, {
      nocase: true,
      dot: true,
      nonegate: true,
      noextglob: true,
      strictBrackets: true,
      debug: true,
    })
    return (name) => matches(name)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/ - use .*$/s, '') : 'it does not compile'
    throw new InvalidValue(`${quote(pattern)} is not a glob: ${reason}`)
  }
}

type Note = (key: keyof PolicyEntry, message: string, index?: number) => void

function duration(entry: PolicyEntry, key: 'max_ttl' | 'max_agent_lifetime', note: Note): number | undefined {
  const text = entry[key]
  if (text === undefined) return undefined
  const value = parseDuration(text)
  if (value === undefined) note(key, `${quote(text)} is not a duration: write it as 45s, 10m, 1h30m or 7d`)
  return value
}

function checkScopes(entry: PolicyEntry, note: Note): void {
  for (const key of ['scopes', 'deny'] as const) {
    for (const [index, scope] of (entry[key] ?? []).entries()) {
      if (!isScope(scope)) {
        note(key, `${quote(scope)} is not a scope of the form backend:resource:permission`, index)
      } else if (key === 'scopes' && entry.auto_approve === true && isAdminScope(scope)) {
        note(key, `${quote(scope)} is an admin scope; policies never approve those`, index)
      }
    }
  }
  if (entry.auto_approve !== true) return
  if (entry.scopes.length === 0)
    note('scopes', 'is empty: automatically approved agents would hold no scopes')
  const whole = entry.scopes.filter((scope) => entry.deny?.includes(scope))
  for (const scope of whole) note('deny', `${quote(scope)} is both granted and denied by this policy`)
}

function compile(entry: PolicyEntry, note: Note): ConfiguredPolicy {
  let matches = (_name: string): boolean => false
  if (!POLICY_NAME.test(entry.name)) {
    note('name', `${quote(entry.name)} is not 1 to 128 letters, digits, ".", "_" or "-"`)
  }
  try {
    matches = compilePattern(entry.pattern)
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error
    note('pattern', error.message)
  }
  checkScopes(entry, note)
  for (const [index, audience] of (entry.audiences ?? []).entries())
    if (!isAudience(audience))
      note('audiences', `${quote(audience)} is not a name without spaces, or a URI`, index)
  return {
    name: entry.name,
    pattern: entry.pattern,
    matches,
    scopes: entry.scopes,
    autoApprove: entry.auto_approve ?? false,
    maxAgentLifetimeMs: duration(entry, 'max_agent_lifetime', note),
    maxTtlMs: duration(entry, 'max_ttl', note),
    maxAgents: entry.max_agents,
    rate: rateOf(entry, 'rate', note),
    issueRate: rateOf(entry, 'issue_rate', note),
    maxActive: entry.max_active,
    audiences: entry.audiences,
    suffix: entry.suffix,
    deny: entry.deny ?? [],
  }
}

function rateOf(entry: PolicyEntry, key: 'rate' | 'issue_rate', note: Note): Rate | undefined {
  const text = entry[key]
  const rate = text === undefined ? undefined : parseRate(text)
  if (text !== undefined && rate === undefined) {
    note(key, `${quote(text)} is not a rate: write it as 10/hour (second, minute, hour or day)`)
  }
  return rate
}

/** Compiles all policies and reports every fault with its place in the list. */
export function compilePolicies(
  entries: readonly PolicyEntry[],
  report: (fault: InvalidValue) => void,
): ConfiguredPolicy[] {
  const names = new Set<string>()
  return entries.map((entry, index) => {
    const key = entry.name.toLowerCase()
    if (names.has(key)) {
      report(new InvalidValue(`${quote(entry.name)} is already the name of another policy`, [index, 'name']))
    }
    names.add(key)
    return compile(entry, (field, message, inner) =>
      report(new InvalidValue(message, inner === undefined ? [index, field] : [index, field, inner])),
    )
  })
}

/** Stand in for parts of the wrong shape, and have no faults themselves. */
const SOUND_SCOPE = { scopes: 'x:granted', deny: 'x:denied' }

/**
 * These policies with everything of a wrong shape left out or replaced, so that `compilePolicies` finds the faults of
 * the rest. Good for nothing else.
 */
export function soundForm(wire: unknown): PolicyEntry[] {
  return Array.isArray(wire) ? wire.map(soundEntry) : []
}

function soundEntry(wire: unknown, index: number): PolicyEntry {
  const given = isObject(wire) ? wire : {}
  const sound = Object.entries(PolicySchema.properties as Readonly<Record<string, TSchema>>).flatMap(
    ([key, schema]) => (Object.hasOwn(given, key) && Check(schema, given[key]) ? [[key, given[key]]] : []),
  )
  const entry: PolicyEntry = {
    name: `unnamed-${index}`,
    pattern: '*',
    scopes: scopesOf(given['scopes'], SOUND_SCOPE.scopes),
    ...Object.fromEntries(sound),
  }
  if (Array.isArray(given['deny'])) entry.deny = scopesOf(given['deny'], SOUND_SCOPE.deny)
  // `yes` is text in YAML, though its author means true.
  if (typeof given['auto_approve'] === 'string')
    entry.auto_approve = !/^(?:no?|off|false)$/i.test(given['auto_approve'])
  return entry
}

/** Keeps the place of each scope. */
const scopesOf = (given: unknown, instead: string) =>
  Array.isArray(given) ? given.map((scope) => (typeof scope === 'string' ? scope : instead)) : [instead]
