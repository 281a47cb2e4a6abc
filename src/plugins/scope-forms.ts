import { isScope } from '../domain/scope.ts'

/**
 * Forms of scopes as a plugin states them: parts between colons, each a text, or a text with one `<name>` in it, which stands for
 * one or more characters; `<name...>` at the end stands for the rest, colons included.
 */
type Part = { readonly before: string; readonly after: string; readonly kind: 'text' | 'name' | 'rest' }

const PART =
  /^(?<before>[A-Za-z0-9._/@+*-]*)<[a-z][a-z0-9_]{0,31}(?<rest>\.\.\.)?>(?<after>[A-Za-z0-9._/@+*-]*)$/
const TEXT = /^[A-Za-z0-9._/@+*-]+$/

/** `undefined`: it is not a form. */
function readForm(form: string): readonly Part[] | undefined {
  const texts = form.split(':')
  const parts = texts.map((text, index): Part | undefined => {
    if (TEXT.test(text)) return { before: text, after: '', kind: 'text' }
    const { before, rest, after } = PART.exec(text)?.groups ?? {}
    if (before === undefined || after === undefined) return undefined
    if (rest === undefined) return { before, after, kind: 'name' }
    return index === texts.length - 1 && after === '' ? { before, after, kind: 'rest' } : undefined
  })
  return parts.every((part) => part !== undefined) ? parts : undefined
}

export function isForm(form: string): boolean {
  return form.length <= 256 && readForm(form) !== undefined
}

/** Whether a scope is well formed and of one of these forms. Takes time in proportion to its length. */
export function matcherOf(forms: readonly string[]): (scope: string) => boolean {
  const read = forms.map(readForm).filter((parts) => parts !== undefined)
  return (scope) => isScope(scope) && read.some((parts) => matches(parts, scope.split(':')))
}

function matches(parts: readonly Part[], given: readonly string[]): boolean {
  const takesRest = parts.at(-1)?.kind === 'rest'
  if (takesRest ? given.length < parts.length : given.length !== parts.length) return false
  return parts.every(({ before, after, kind }, index) => {
    const text = kind === 'rest' ? given.slice(index).join(':') : (given[index] ?? '')
    if (kind === 'text') return text === before
    return text.length > before.length + after.length && text.startsWith(before) && text.endsWith(after)
  })
}

/** As our own kinds write it: a name stands for whatever the kind takes. */
export function shownForm(form: string): string {
  return form.replace('...>', '>')
}
