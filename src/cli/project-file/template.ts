import { isLastingField } from '../../domain/open-fields.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { fieldOf } from './credential-field.ts'

/** One field of a credential, or text that contains fields. */
export interface Template {
  readonly parts: readonly ({ readonly text: string } | { readonly field: string })[]
}

const FIELD = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/
const PLACE = /\{\{\s*([^{}]*?)\s*\}\}/g
const KIND_PLACE = /\{([A-Za-z_][A-Za-z0-9_-]{0,63})\}/g

/** `password`, or `{{host}}:{{port}}`. Undefined for text that names no field. */
export function parseTemplate(text: string): Template | undefined {
  if (FIELD.test(text)) return { parts: [{ field: text }] }
  const places = [...text.matchAll(PLACE)]
  if (places.length === 0 || places.some((place) => !FIELD.test(place[1] ?? ''))) return undefined
  return partsOf(text, places)
}

/** As kinds write it: `{host}:{port}`. Any other text, also with braces, stands for itself. */
export function parseKindTemplate(text: string): Template {
  return partsOf(text, [...text.matchAll(KIND_PLACE)])
}

function partsOf(text: string, places: readonly RegExpExecArray[]): Template {
  const parts: ({ text: string } | { field: string })[] = []
  let from = 0
  for (const place of places) {
    if (place.index > from) parts.push({ text: text.slice(from, place.index) })
    parts.push({ field: place[1] ?? '' })
    from = place.index + place[0].length
  }
  if (from < text.length) parts.push({ text: text.slice(from) })
  return { parts }
}

export function fieldsOf({ parts }: Template): string[] {
  return parts.flatMap((part) => ('field' in part ? [part.field] : []))
}

/** Throws `CliError` for a field the credential lacks. */
export function fill({ parts }: Template, credential: HeldCredential): string {
  return parts.map((part) => ('text' in part ? part.text : fieldOf(credential, part.field))).join('')
}

/** Whether the text stays the same when the credential is renewed. */
export function isLasting({ parts }: Template): boolean {
  return parts.every((part) => 'text' in part || isLastingField(part.field))
}
