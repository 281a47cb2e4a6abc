import { isScope } from '../domain/scope.ts'

/**
 * Forms of scopes as a plugin states them: parts between colons, each a text, or a text with one `<name>` in it, which stands for
 * one or more characters; `<name...>` at the end stands for the rest, colons included. A part with several names has them between
 * slashes, as in `<owner>/<repo>`, and then each stands for what is between two of them.
 */
type Piece = { readonly before: string; readonly after: string; readonly kind: 'text' | 'name' | 'rest' }
/** More than one: divided by slashes. */
type Part = readonly [Piece, ...Piece[]]

const NAME =
  /^(?<before>[A-Za-z0-9._/@+*-]*)<[a-z][a-z0-9_]{0,31}(?<rest>\.\.\.)?>(?<after>[A-Za-z0-9._/@+*-]*)$/
const TEXT = /^[A-Za-z0-9._/@+*-]+$/

/** `undefined`: it is not a form. */
function readForm(form: string): readonly Part[] | undefined {
  const texts = form.split(':')
  const parts = texts.map((text, index) => readPart(text, index === texts.length - 1))
  return parts.every((part) => part !== undefined) ? parts : undefined
}

function readPart(text: string, isLast: boolean): Part | undefined {
  const hasSeveral = text.split('<').length > 2
  const texts = hasSeveral ? text.split('/') : [text]
  const [first, ...more] = texts.map((one, index) => readPiece(one, isLast && index === texts.length - 1))
  if (first === undefined || !more.every((piece) => piece !== undefined)) return undefined
  return [first, ...more]
}

function readPiece(text: string, isLast: boolean): Piece | undefined {
  if (TEXT.test(text)) return { before: text, after: '', kind: 'text' }
  const { before, rest, after } = NAME.exec(text)?.groups ?? {}
  if (before === undefined || after === undefined) return undefined
  if (rest === undefined) return { before, after, kind: 'name' }
  return isLast && after === '' ? { before, after, kind: 'rest' } : undefined
}

export function isForm(form: string): boolean {
  return form.length <= 256 && readForm(form) !== undefined
}

/** Whether a scope is well formed and of one of these forms. Takes time in proportion to its length. */
export function matcherOf(forms: readonly string[]): (scope: string) => boolean {
  const read = forms.map(readForm).filter((parts) => parts !== undefined)
  return (scope) => isScope(scope) && read.some((parts) => matchesForm(parts, scope.split(':')))
}

function matchesForm(parts: readonly Part[], given: readonly string[]): boolean {
  const takesRest = endsOpen(parts.at(-1))
  if (takesRest ? given.length < parts.length : given.length !== parts.length) return false
  return parts.every((part, index) => {
    const isRest = takesRest && index === parts.length - 1
    return matchesPart(part, isRest ? given.slice(index).join(':') : (given[index] ?? ''))
  })
}

const endsOpen = (part: Part | undefined) => part?.at(-1)?.kind === 'rest'

function matchesPart(part: Part, text: string): boolean {
  const [only, ...more] = part
  if (more.length === 0) return matchesPiece(only, text)
  const given = text.split('/')
  if (endsOpen(part) ? given.length < part.length : given.length !== part.length) return false
  return part.every((piece, index) => {
    const isRest = piece.kind === 'rest'
    const one = isRest ? given.slice(index).join('/') : (given[index] ?? '')
    return matchesPiece(piece, one) && (isRest || !one.includes(':'))
  })
}

function matchesPiece({ before, after, kind }: Piece, text: string): boolean {
  if (kind === 'text') return text === before
  return text.length > before.length + after.length && text.startsWith(before) && text.endsWith(after)
}

/** As our own kinds write it: a name stands for whatever the kind takes. */
export function shownForm(form: string): string {
  return form.replace('...>', '>')
}
