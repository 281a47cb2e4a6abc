import type { ScopeForm } from '../../backends/kind.ts'
import { isScope } from '../../domain/scope.ts'
import { isForm, matcherOf } from '../scope-forms.ts'

/** One pattern of a plugin, such as `github:*:read`, in our terms. */
export interface ScopePattern {
  readonly form: ScopeForm
  /**
   * What stands before our relative scope when the plugin gets it: its own name, which it looks for whatever we call the backend;
   * the name of the backend, where the plugin permits any; or nothing.
   */
  readonly before: 'plugin' | 'backend' | 'nothing'
  matches(scope: string): boolean
}

/** A pattern of a name alone means everything, which is `*` in a relative scope. */
const EVERYTHING = '*'
const ANYTHING = '<scope...>'
const UNKNOWN = 'do what the plugin gives for the scope'

export function readPattern(plugin: string, pattern: string, description: string): ScopePattern {
  const [first = '', ...rest] = pattern.split(':')
  const before = first === plugin ? 'plugin' : isOpen(first) ? 'backend' : 'nothing'
  const parts = before === 'nothing' ? [first, ...rest] : rest
  const form = parts.length === 0 ? EVERYTHING : formOf(parts)
  // What our forms cannot say, the plugin judges itself.
  return patternOf(isForm(form) ? form : ANYTHING, givesOf(description), before)
}

/**
 * What a plugin permits, from its patterns and examples. An example that no pattern takes shows that the patterns do not say
 * everything, as where a permission may follow; then its `MatchScope` judges what no pattern takes.
 */
export function readPatterns(
  plugin: string,
  stated: readonly {
    readonly pattern: string
    readonly gives: string
    readonly examples: readonly string[]
  }[],
): readonly ScopePattern[] {
  if (stated.length === 0) return [ANY_SCOPE]
  const patterns = stated.map(({ pattern, gives }) => readPattern(plugin, pattern, gives))
  const missed = stated
    .flatMap(({ examples }) => examples)
    .filter(isScope)
    .filter((example) => !patterns.some((pattern) => takes(plugin, pattern, example)))
  const open = new Set(missed.map((example) => (example.split(':')[0] === plugin ? 'plugin' : 'nothing')))
  return [...patterns, ...[...open].map((before) => patternOf(ANYTHING, UNKNOWN, before))]
}

/** Whether a scope of the plugin's own is of this pattern. */
function takes(plugin: string, { before, matches }: ScopePattern, scope: string): boolean {
  const [first = '', ...rest] = scope.split(':')
  if (before === 'nothing') return matches(scope)
  if (before === 'plugin' && first !== plugin) return false
  return matches(rest.length === 0 ? EVERYTHING : rest.join(':'))
}

/** Where the plugin states no pattern, only it knows what it accepts. */
export const ANY_SCOPE = patternOf(ANYTHING, UNKNOWN, 'plugin')

function patternOf(form: string, gives: string, before: ScopePattern['before']): ScopePattern {
  return { form: { form, gives }, before, matches: matcherOf([form]) }
}

/** A scope of ours, as the plugin expects it. */
export function theirScope(
  names: { readonly plugin: string; readonly backend: string },
  patterns: readonly ScopePattern[],
  scope: string,
): string {
  const { before, form } = patterns.find(({ matches }) => matches(scope)) ?? ANY_SCOPE
  if (before === 'nothing') return scope
  return form.form === EVERYTHING ? names[before] : `${names[before]}:${scope}`
}

/** `*`, `read-*`, `<name>` and `{name}` are open; everything else is text. */
const OPEN = /\*+|<[^>]*>|\{[^}]*\}/g

function isOpen(part: string): boolean {
  return part.search(OPEN) !== -1
}

/** The last open part takes colons, too: whether the plugin does, its `MatchScope` says. */
function formOf(parts: readonly string[]): string {
  const taken = new Set<string>()
  return parts
    .map((part, index) =>
      part.replace(OPEN, (open, at: number) => {
        const name = freeName(open, taken)
        taken.add(name)
        const isEnd = index === parts.length - 1 && at + open.length === part.length
        return isEnd ? `<${name}...>` : `<${name}>`
      }),
    )
    .join(':')
}

function freeName(open: string, taken: ReadonlySet<string>): string {
  const given = open.toLowerCase().replace(/[^a-z0-9_]/g, '')
  const name = /^[a-z]/.test(given) ? given.slice(0, 24) : 'name'
  for (let count = 2; ; count += 1) {
    const one = count === 2 ? name : `${name}${count - 1}`
    if (!taken.has(one)) return one
  }
}

/** The end of a sentence that begins "a credential that may …". */
function givesOf(description: string): string {
  const text = description.trim().replace(/\.$/, '').slice(0, 200)
  return text === '' ? UNKNOWN : `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`
}
