import fc from 'fast-check'
import { isScope } from '../../src/domain/scope.ts'

/** Scopes of a small alphabet, so that they meet each other often. */
export const segment = fc.oneof(
  fc.constantFrom('a', 'ab', 'abc', 'b', 'admin', 'adm'),
  fc.constantFrom('*', 'a*', 'ab*', 'adm*'),
)
export const scope = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(':'))

/** What may stand for each `<word>` of a form. */
export type Names = Readonly<Record<string, readonly string[]>>

const NAMES = ['a', 'ab', 'abc', 'b']
const WORD = /<(\w+)>/g

/** The form with a name for each of its words. */
export function fillForm(form: string, names: Names, pick: (all: readonly string[]) => string): string {
  return form.replace(WORD, (_, word: string) => pick(names[word] ?? NAMES))
}

/** Scopes of these forms, also wider and narrower ones, which need not be valid for the kind. */
export function scopesOf(forms: readonly string[], names: Names): fc.Arbitrary<string> {
  const filled = fc.tuple(fc.constantFrom(...forms), fc.infiniteStream(fc.nat(97))).map(([form, stream]) => {
    const numbers = stream[Symbol.iterator]()
    return fillForm(form, names, (all) => all[numbers.next().value % all.length] ?? '')
  })
  const changed = fc
    .tuple(filled, fc.constantFrom(...CHANGES), fc.nat(97))
    .map(([text, change, at]) => change(text, at))
  return fc
    .oneof({ weight: 3, arbitrary: filled }, { weight: 2, arbitrary: changed })
    .map((text) => (isScope(text) ? text : '*'))
}

/** Changes one segment of a scope. */
const within = (change: (part: string, at: number) => string) => (text: string, at: number) => {
  const parts = text.split(':')
  const which = at % parts.length
  return parts.map((part, index) => (index === which ? change(part, at) : part)).join(':')
}

const CHANGES: readonly ((text: string, at: number) => string)[] = [
  within(() => '*'),
  within((part) => `${part.replace(/\*$/, '')}*`),
  within((part, at) => `${part.slice(0, 1 + (at % part.length)).replace(/\*$/, '')}*`),
  within((part) => part.replace(/\*$/, '') || 'a'),
  within((part) => `${part.replace(/\*$/, '')}b`),
  (text) => text.replace(/:[^:]*$/, ''),
  (text) => `${text}:*`,
  (text) => `${text}:a`,
]

/** Text that an attacker would send in place of a scope. */
export const hostileScopes = (scopes: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      scopes,
      fc.constantFrom("'", '"', '`', '\\', '\n', '\0', ' ', '$', '%', '|', ',', ';', '*', '::', 'ä'),
      fc.nat(97),
    )
    .map(([text, sting, at]) => {
      const place = at % (text.length + 1)
      return text.slice(0, place) + sting + text.slice(place)
    })
    .filter((text) => !isScope(text))
